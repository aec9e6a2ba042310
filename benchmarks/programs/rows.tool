def t(n: int = 30000) -> Any:
    """Rows.

    Args:
        n: How much of it.
    """
    rows = [{"id": i, "group": "g" + str(i % 13), "value": i * 7919 % 1000} for i in range(n)]
    groups = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row["value"])
    return sorted([[name, sum(values), max(values)] for name, values in groups.items()])
