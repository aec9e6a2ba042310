def only_numbers(path: str) -> bool:
    """Check that a file contains only numbers."""
    for part in tools.read_file(path=path).split():
        try:
            int(part)
        except ValueError:
            return False
    return True
