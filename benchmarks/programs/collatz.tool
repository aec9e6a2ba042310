def t(n: int = 1500) -> Any:
    """Collatz.

    Args:
        n: How much of it.
    """
    best = 0
    for start in range(1, n):
        value, steps = start, 0
        for _ in range(10000):
            if value == 1:
                break
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps += 1
        if steps > best:
            best = steps
    return best
