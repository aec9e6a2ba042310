def t(n: int = 30000) -> Any:
    """Methods.

    Args:
        n: How much of it.
    """
    found = []
    for i in range(n):
        text = "  Item " + str(i) + " of many  "
        text = text.strip().lower().replace("item", "thing")
        if text.startswith("thing") and text.endswith("many"):
            found.append(text.upper()[:8])
    return len(found)
