def t(n: int = 150000) -> Any:
    """Float loop.

    Args:
        n: How much of it.
    """
    x, y, v = 1.0, 0.0, 0.5
    for i in range(n):
        a = -x * 0.01
        v = v + a * 0.1
        x = x + v * 0.1
        y = y + x * x
    return round(y, 6)
