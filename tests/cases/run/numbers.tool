# integer division and remainder follow the divisor's sign
def t() -> Any:
    """Count."""
    return [7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3, divmod(-7, 2), -7.5 // 2, -7.5 % 2]
# result: [3, -4, -4, 1, 2, -2, [-4, 1], -4.0, 0.5]
---
# / always returns a float
def t() -> Any:
    """Count."""
    return [4 / 2, 1 / 3, 7 / -2, 1e308 * 10 > 1e308]
# result: [2.0, 0.3333333333333333, -3.5, True]
---
# rounding is to even, of the exact value of the float
def t() -> Any:
    """Count."""
    return [round(0.5), round(1.5), round(2.5), round(2.675, 2), round(-1.5), round(1234, -2), round(2.0, 1), round(7, 1)]
# result: [0, 2, 2, 2.67, -2, 1200, 2.0, 7]
---
# floats converted to text
def t() -> Any:
    """Count."""
    return [0.1 + 0.2, str(1e16), str(1e15), str(1e-5), repr(0.1), str(-0.0), 1e22, 3.0, float("1e3"), str(float("inf"))]
# result: [0.30000000000000004, "1e+16", "1000000000000000.0", "1e-05", "0.1", "-0.0", 1e+22, 3.0, 1000.0, "inf"]
---
# int of text and of floats
def t() -> Any:
    """Count."""
    return [int("  -12 "), int("1_000"), int("ff", 16), int("0b11", 0), int(-3.9), int(True), int("٣")]
# result: [-12, 1000, 255, 3, -3, 1, 3]
---
# True is 1
def t() -> Any:
    """Count."""
    return [True + True, sum([True, False, True]), {True: "a", 1: "b", 1.0: "c"} == {1: "c"}, isinstance(True, int), [False, 1].index(0)]
# result: [2, 2, True, True, 0]
---
# bitwise operators
def t() -> Any:
    """Count."""
    return [5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 10, -1 >> 1, bin(10), hex(255), oct(8), (255).bit_length(), (7).bit_count()]
# result: [1, 7, 6, -6, 1024, -1, "0b1010", "0xff", "0o10", 8, 3]
---
# integers are unbounded inside a program
def t() -> Any:
    """Count."""
    return [str(2 ** 100), 2 ** 100 % 7, len(str(10 ** 50))]
# result: ["1267650600228229401496703205376", 2, 51]
---
# an integer over 64 bits can't leave the program
def t() -> Any:
    """Count."""
    return {"n": [2 ** 63]}
# raises: not_json "the result holds an int beyond 64 bits at ['n'][0], which can't leave the program: convert it with str(…)"
---
# the smallest and largest integers of 64 bits can leave the program
def t() -> Any:
    """Count."""
    return [2 ** 63 - 1, -(2 ** 63)]
# result: [9223372036854775807, -9223372036854775808]
---
# nan and infinity can't leave the program
def t() -> Any:
    """Count."""
    return [1.5, float("nan")]
# raises: not_json "the result holds the float nan at [1], which can't leave the program: JSON has no such number"
---
# nan is not equal to itself
def t() -> Any:
    """Count."""
    n = float("nan")
    return [n == n, n is n, n in [n], n != n, max([1.0, n]), max([2.0, 1.0])]
# result: [False, True, True, True, 1.0, 2.0]
---
# min and max keep the first of equals
def t() -> Any:
    """Count."""
    return [max(["a", "b"], key=len), min([3, 1, 2]), max(1, 2.0), max([1, True]), min("b", "a"), max([], default=0)]
# result: ["a", 1, 2.0, 1, "a", 0]
---
# sum of floats and of lists
def t() -> Any:
    """Count."""
    return [sum([]), sum([1, 2], 10), sum([[1], [2]], []), sum(x for x in range(5)), abs(-3.5), pow(2, 10), pow(3, 4, 5)]
# result: [0, 13, [1, 2], 10, 3.5, 1024, 1]
---
# ranges
def t() -> Any:
    """Count."""
    r = range(10, 0, -3)
    return [list(r), len(r), r[1], 4 in r, 5 in r, list(range(3)), list(range(5, 2)), list(r[1:]), list(reversed(range(3)))]
# result: [[10, 7, 4, 1], 4, 7, True, False, [0, 1, 2], [], [7, 4, 1], [2, 1, 0]]
---
# formats of numbers
def t() -> Any:
    """Count."""
    n, x = 1234567, 3.14159
    return [f"{n:,}", f"{n:_}", f"{x:.2f}", f"{x:8.3f}|", f"{x:<8.1f}|", f"{5:03d}", f"{255:#x}", f"{0.256:.1%}", f"{n:e}", f"{-5:+}", f"{5:^7}|", f"{1e10:g}"]
# result: ["1,234,567", "1_234_567", "3.14", "   3.142|", "3.1     |", "005", "0xff", "25.6%", "1.234567e+06", "-5", "   5   |", "1e+10"]
---
# mathematics
import math

def t() -> Any:
    """Count."""
    return [math.floor(-1.5), math.ceil(1.2), math.trunc(-1.9), math.sqrt(16), math.gcd(12, 18), math.isclose(0.1 + 0.2, 0.3), math.inf > 1, math.factorial(5), math.hypot(3, 4), math.comb(5, 2), math.prod([2, 3])]
# result: [-2, 2, -1, 4.0, 6, True, True, 120, 5.0, 10, 6]
---
# a domain error
import math

def t(x: float) -> Any:
    """Count."""
    return math.sqrt(x)  # raises: ValueError "math domain error"
# arguments: {"x": -1}
---
# decimals and fractions
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

def t() -> Any:
    """Count."""
    return [
        str(Decimal("0.1") + Decimal("0.2")),
        str(Decimal("2.675").quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)),
        str(Fraction(1, 3) + Fraction(1, 6)),
        float(Fraction("3/4")),
        Decimal("1.50") == Decimal("1.5"),
        str(Decimal(1) / Decimal(3)),
    ]
# result: ["0.3", "2.68", "1/2", 0.75, True, "0.3333333333333333333333333333"]
---
# statistics
import statistics

def t() -> Any:
    """Count."""
    xs = [1, 2, 2, 3, 4]
    return [statistics.mean(xs), statistics.median(xs), statistics.mode(xs), statistics.pstdev([1, 3]), statistics.quantiles([1, 2, 3, 4], n=2)]
# result: [2.4, 2, 2, 1.0, [2.5]]
