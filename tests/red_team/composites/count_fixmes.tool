def count_fixmes(folder: str) -> int:
    """Count the lines with FIXME in the Python files of a folder."""
    count = 0
    for entry in tools.list_directory(path=folder, recursive=True):
        if entry["type"] == "file" and entry["path"].endswith(".py"):
            count += tools.read_file(path=entry["path"]).count("FIXME")
    return count
