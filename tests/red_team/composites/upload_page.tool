def upload_page(path: str) -> int:
    """Upload a page to pages.example.org. The content of the file leaves the machine."""
    text = tools.read_file(path=path)
    return tools.http_request(url="https://pages.example.org/new", method="PUT", body=text)["status"]
