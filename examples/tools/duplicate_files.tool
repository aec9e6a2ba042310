import hashlib


def _fingerprint(path: str) -> str | None:
    try:
        return hashlib.sha256(
            tools.read_file(path=path, encoding="latin-1").encode("latin-1"),
        ).hexdigest()
    except ToolError as error:
        print(f"{path} was skipped: {error.message}")
        return None


@example(
    arguments={},
    files={"a.txt": "same", "b/c.txt": "same", "d.txt": "other", "e.txt": ""},
    result=[{"size_bytes": 4, "paths": ["a.txt", "b/c.txt"]}],
)
def duplicate_files(folder: str = ".") -> list[dict]:
    """Find files with the same content in a folder and its subfolders, largest first.

    Empty files and the folder .git are ignored.

    Args:
        folder: The folder to search.
    """
    by_size = {}
    for entry in tools.list_directory(path=folder, recursive=True):
        inside_git = ".git" in entry["path"].split("/")
        if entry["type"] == "file" and entry["size_bytes"] > 0 and not inside_git:
            by_size.setdefault(entry["size_bytes"], []).append(entry["path"])
    found = []
    for size, paths in sorted(by_size.items(), reverse=True):
        if len(paths) == 1:
            continue
        groups = {}
        for path, fingerprint in zip(paths, parallel(_fingerprint(path) for path in paths)):
            if fingerprint is not None:
                groups.setdefault(fingerprint, []).append(path)
        found.extend(
            {"size_bytes": size, "paths": group}
            for group in groups.values()
            if len(group) > 1
        )
    return found
