import re


def save_note(name: str, text: str) -> str:
    """Save a text in the folder notes."""
    if not re.fullmatch(r"[a-z0-9-]+", name):
        raise ToolError("use only small letters, digits and -")
    path = f"notes/{name}.md"
    tools.write_file(path=path, content=text, create_only=True)
    return path
