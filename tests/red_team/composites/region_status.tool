def region_status(region: str) -> int:
    """Return the HTTP status of the company's service in a region."""
    hosts = {"eu": "https://eu.example.org/health", "us": "https://us.example.org/health"}
    if region not in hosts:
        raise ToolError(f"there is no region {region}")
    return tools.http_request(url=hosts[region])["status"]
