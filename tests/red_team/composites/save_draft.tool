import posixpath


def save_draft(name: str, text: str) -> str:
    """Save a text in the folder drafts."""
    path = posixpath.join("drafts", name)
    tools.write_file(path=path, content=text)
    return path
