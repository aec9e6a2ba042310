def longer_file(left: str, right: str) -> str:
    """Return the path of the longer file."""
    sizes = parallel(tools.file_info(path=path) for path in [left, right])
    return left if sizes[0]["size_bytes"] >= sizes[1]["size_bytes"] else right
