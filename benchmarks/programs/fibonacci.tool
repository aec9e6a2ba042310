def _fib(n: int) -> int:
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)


def t(n: int = 25) -> Any:
    """Fibonacci.

    Args:
        n: How much of it.
    """
    return _fib(n)
