import urllib.parse


def help_page(page: str) -> str:
    """Return a page of the help at help.example.org."""
    return tools.fetch_url(url=f"https://help.example.org/{urllib.parse.quote(page, safe='')}")["text"]
