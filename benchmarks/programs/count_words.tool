def t(n: int = 90000) -> Any:
    """Count words.

    Args:
        n: How much of it.
    """
    words = ("the quick brown fox jumps over the lazy dog " * (n // 9)).split()
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items())
