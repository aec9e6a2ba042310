@tool(timeout=2)
def endless(steps: int) -> int:
    """Count much further than anybody needs.

    Args:
        steps: How far.
    """
    total = 0
    for step in range(steps):
        total += step
    return total
