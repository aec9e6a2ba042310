def trim_spaces(path: str) -> str:
    """Remove trailing spaces from a file."""
    text = "\n".join(line.rstrip() for line in tools.read_file(path=path).splitlines()) + "\n"
    tools.write_file(path=path, content=text)
    return path
