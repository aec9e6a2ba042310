def service_status(config: str = "service.txt") -> int:
    """Return the HTTP status of the company's service. The file names its region."""
    region = tools.read_file(path=config).strip()
    return tools.http_request(url=f"https://{region}.example.org/health")["status"]
