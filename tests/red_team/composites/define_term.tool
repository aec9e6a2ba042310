import urllib.parse


def define_term(term: str) -> str:
    """Look up a term in the dictionary at dictionary.example.org."""
    query = urllib.parse.urlencode({"term": term})
    return tools.http_request(url=f"https://dictionary.example.org/find?{query}")["body"]
