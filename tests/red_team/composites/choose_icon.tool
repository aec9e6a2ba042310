def choose_icon(kind: str) -> str:
    """Return the icon for a kind of file, from the folder icons."""
    names = {"text": "page", "image": "photo"}
    return tools.read_file(path=f"icons/{names.get(kind, 'other')}.svg")
