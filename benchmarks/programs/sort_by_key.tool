def t(n: int = 12000) -> Any:
    """Sort by key.

    Args:
        n: How much of it.
    """
    values = [i * 7919 % 10007 for i in range(n)]
    ordered = sorted(values, key=(lambda v: (v % 10, -v)))
    return ordered[:5] + ordered[-5:]
