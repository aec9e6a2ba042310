def unknown_words(path: str) -> list[str]:
    """Return the words of a file that are not in the list at list.example.org."""
    text = tools.read_file(path=path)
    words = tools.http_request(url="https://list.example.org/list.txt", headers={"accept": "text/plain"})["body"].split()
    return [word for word in text.split() if word.lower() not in words]
