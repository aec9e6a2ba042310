def trim_line(text: str) -> str:
    """Normalise one line."""
    return text.strip()
---
def lower_line(text: str) -> str:
    """Clean one line of a list."""
    return tools.trim_line(text=text).lower()
---
def sort_list(path: str) -> list[str]:
    """Return the lines of a list, clean and sorted."""
    return sorted(tools.lower_line(text=line) for line in tools.read_file(path=path).splitlines())
