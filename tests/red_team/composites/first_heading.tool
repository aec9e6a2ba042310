import re


def first_heading(path: str) -> str:
    """Return the first heading of a document in Markdown, or of what it includes."""
    pending = [path]
    for name in pending:
        text = tools.read_file(path=name)
        for line in text.splitlines():
            if line.startswith("#"):
                return line
        pending.extend(re.findall(r"\(([^)]+)\)", text))
    return "\n".join(pending)
