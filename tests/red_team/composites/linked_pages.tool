import re


def linked_pages(folder: str) -> list[str]:
    """Return all links in the Markdown files of a folder."""
    found = []
    for path in tools.find_files(pattern="*.md", path=folder)["paths"]:
        found.extend(re.findall(r"\(([^)]+)\)", tools.read_file(path=path)))
    return sorted(set(found))
