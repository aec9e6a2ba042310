def t(n: int = 60) -> Any:
    """Matrix.

    Args:
        n: How much of it.
    """
    a = [[i * j % 7 for j in range(n)] for i in range(n)]
    b = [[i + j for j in range(n)] for i in range(n)]
    c = [[sum([a[i][k] * b[k][j] for k in range(n)]) for j in range(n)] for i in range(n)]
    return sum([sum(row) for row in c])
