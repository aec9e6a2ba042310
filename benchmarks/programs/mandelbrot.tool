def t(n: int = 60) -> Any:
    """Mandelbrot.

    Args:
        n: How much of it.
    """
    inside = 0
    for py in range(n):
        for px in range(n):
            cr, ci = 3.0 * px / n - 2.0, 2.0 * py / n - 1.0
            zr, zi = 0.0, 0.0
            hit = True
            for _ in range(50):
                zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
                if zr * zr + zi * zi > 4.0:
                    hit = False
                    break
            if hit:
                inside += 1
    return inside
