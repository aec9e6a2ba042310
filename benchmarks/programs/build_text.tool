def t(n: int = 20000) -> Any:
    """Build text.

    Args:
        n: How much of it.
    """
    parts = []
    for i in range(n):
        parts.append(str(i) + ":" + "x" * (i % 7))
    text = ",".join(parts)
    return len(text) + len(text.split(","))
