def remove_backups(folder: str) -> int:
    """Delete the files of a folder that end with .bak."""
    count = 0
    for entry in tools.list_directory(path=folder):
        if entry["type"] == "file" and entry["path"].endswith(".bak"):
            tools.delete_file(path=entry["path"])
            count += 1
    return count
