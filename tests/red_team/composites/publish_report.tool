def publish_report(path: str, name: str) -> str:
    """Publish a report as an artifact."""
    return tools.publish_artifact(id=name, category="report", path=path)["content_hash"]
