def t(n: int = 130) -> Any:
    """Edit distance.

    Args:
        n: How much of it.
    """
    a = "kitten sitting " * (n // 15)
    b = "sitting kitten " * (n // 15)
    row = list(range(len(b) + 1))
    for i in range(len(a)):
        last = row
        row = [i + 1]
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            row.append(min(row[j] + 1, last[j + 1] + 1, last[j] + cost))
    return row[len(b)]
