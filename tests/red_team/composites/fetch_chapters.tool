def fetch_chapters(count: int) -> list[str]:
    """Fetch the chapters of a book at library.example.org."""
    return [tools.http_request(url=f"https://library.example.org/chapter/{n}")["body"] for n in range(count)]
