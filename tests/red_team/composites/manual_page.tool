def manual_page(page: str) -> str:
    """Return a page of the manual at docs.example.org."""
    return tools.fetch_url(url=f"https://docs.example.org{page}")["text"]
