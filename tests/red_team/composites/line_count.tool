def line_count(path: str) -> int:
    """Count the lines of a file with wc."""
    return int(tools.run_program(argv=["wc", "-l", "--", path])["output"].split()[0])
