def t(n: int = 40000) -> Any:
    """Failures.

    Args:
        n: How much of it.
    """
    caught = 0
    for i in range(n):
        try:
            if i % 3 == 0:
                raise ValueError("three")
            caught += len({"a": 1}["a" if i % 2 else "a"] * "x")
        except ValueError:
            caught += 2
    return caught
