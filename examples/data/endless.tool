@tool(timeout=2)
def endless(steps: int) -> int:
    """Add up numbers for far too long.

    Args:
        steps: How many numbers.
    """
    total = 0
    for step in range(steps):
        total += step
    return total
