def count_lines_of(path: str) -> int:
    """Count the lines of a file with wc."""
    return int(tools.bash(command=f"wc -l < {path}")["output"])
