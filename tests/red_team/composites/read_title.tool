def read_title(path: str) -> str:
    """Return the first heading of a document; the name of the file if it has none."""
    try:
        for line in tools.read_file(path=path).splitlines():
            if line.startswith("# "):
                return line[2:]
    except ToolError as error:
        if error.code != "encoding_error":
            raise
    return path
