def sort_pages(paths: list[str]) -> list[str]:
    """Sort pages by their length."""
    return sorted(paths, key=lambda path: _length_of(path))


def _length_of(path: str) -> int:
    return len(tools.read_file(path=path))
