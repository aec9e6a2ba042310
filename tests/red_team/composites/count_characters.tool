def count_characters(path: str) -> dict[str, int]:
    """Count the characters of a file."""
    found = {}
    for character in tools.read_file(path=path):
        found[character] = found.get(character, 0) + 1
    return found
