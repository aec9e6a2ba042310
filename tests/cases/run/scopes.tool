# every form of binding hides a built-in, from top to bottom
def t(list: list[int]) -> Any:
    """Bind."""
    sum = 0
    for str in list:
        sum += str
    max, *min = list
    found = [int for int in list]
    if (len := 3) > 2:
        sum += len
    return [sum, max, min, found, sorted(list, key=lambda abs: -abs)]

# arguments: {"list": [2, 3]}
# result: [8, 2, [3], [2, 3], [3, 2]]
---
# a hidden built-in in one function is itself in another
def _count(sum: list) -> int:
    return len(sum)

def t(xs: list) -> Any:
    """Sum."""
    return [_count(sum=xs), sum(xs), [sum for sum in xs]]

# arguments: {"xs": [2, 3]}
# result: [2, 5, [2, 3]]
---
# a handler's name that hides a built-in
def t(xs: list) -> Any:
    """Convert."""
    try:
        return int("x")
    except ValueError as len:
        return str(len)

# arguments: {"xs": []}
# result: "invalid literal for int() with base 10: 'x'"
---
# closures read the value of the moment
def t() -> Any:
    """Read."""
    n = 1
    def read():
        return n
    first = read()
    n = 2
    rows = []
    for n in [3, 4]:
        rows.append(read())
    return [first, read(), rows]

# result: [1, 4, [3, 4]]
---
# nonlocal, two levels deep
def t(xs: list) -> Any:
    """Add."""
    total, seen = 0, []
    def each(x):
        def add(y):
            nonlocal total
            total += y
            seen.append(total)
        add(x)
        add(1)
    for x in xs:
        each(x)
    return [total, seen]

# arguments: {"xs": [2, 3]}
# result: [7, [2, 3, 6, 7]]
---
# a nested function that recurses, and one with defaults
def t(n: int) -> Any:
    """Count."""
    memo = {}
    def fib(k):
        if k < 2:
            return k
        if k not in memo:
            memo[k] = fib(k - 1) + fib(k - 2)
        return memo[k]
    def power(base, times=2, *, sign=1):
        return sign * base ** times
    return [fib(n), power(3), power(2, times=3, sign=-1)]

# arguments: {"n": 30}
# result: [832040, 9, -8]
---
# a variable that has no value yet when a nested function reads it
def t() -> Any:
    """Read."""
    def read():
        return n  # raises: NameError "cannot access free variable 'n' where it is not associated with a value in enclosing scope"
    m = read()
    n = 1
    return [m, n]
---
# a nested function as a callback, and names that each call has anew
def t(xs: list) -> Any:
    """Sort."""
    def key(x):
        return -x
    def pairs(x):
        out = []
        def add(y):
            out.append([x, y])
        add(1)
        add(key(x))
        return out
    return [sorted(xs, key=key), list(map(pairs, xs)), max(xs, key=key)]

# arguments: {"xs": [1, 3, 2]}
# result: [[3, 2, 1], [[[1, 1], [1, -1]], [[3, 1], [3, -3]], [[2, 1], [2, -2]]], 1]
---
# imports inside functions
def _round(x: float) -> int:
    from math import floor
    return floor(x)

def t(x: float) -> Any:
    """Import."""
    import json, re as patterns
    if x > 1:
        import math
        x = math.sqrt(x)
    return [json.dumps(x), patterns.sub("a", "b", "cab"), _round(x)]

# arguments: {"x": 4.0}
# result: ["2.0", "cbb", 2]
---
# a tool that calls itself: one call, and defaults count
def t(n: int, depth: int = 0) -> Any:
    """Count."""
    if n == 0:
        return depth, tools.read_file(path="a")
    return t(n - 1, depth=depth + 1) if n % 2 else t(n - 1)

# arguments: {"n": 3}
# calls: read_file(path="a") -> "x"
# result: [1, "x"]
---
# a tool named like a built-in, and a constant and an import
from operator import pow
abs = 2

def sorted(list: list) -> Any:
    """Sort."""
    return [pow(x, abs) for x in list][::-1] + (sorted([1]) if len(list) > 1 else [])

# arguments: {"list": [1, 2]}
# result: [4, 1, 1]
---
# a bare except catches failures and denials, and no limits
def t() -> Any:
    """Catch."""
    found = []
    try:
        tools.read_file(path="a")
    except:
        found.append("denied")
    try:
        found.append(1 / 0)
    except KeyError:
        found.append("key")
    except:
        found.append("zero")
    Exception = 1
    try:
        found.append(int("x"))
    except:
        found.append(Exception)
    return found

# calls: read_file(path="a") raises permission_denied "no"
# result: ["denied", "zero", 1]
---
# a TypedDict where dict is hidden
class Row(TypedDict):
    name: str

def t(dict: str) -> Any:
    """Make."""
    return [Row(name=dict), f"{Row(name=dict)}"]

# arguments: {"dict": "a"}
# result: [{"name": "a"}, "{'name': 'a'}"]
---
# the type of a value
import collections
import datetime
import re

def t(xs: list) -> Any:
    """Ask."""
    values = [*xs, (1,), {2}, b"", collections.Counter(), datetime.date(2024, 1, 1), re.match("a", "a"), ToolError("x"), KeyError(1)]
    names = [type(x).__name__ for x in values]
    exact = [type(x) == int for x in xs] + [type(x) in (bool, str) for x in xs] + [type(True) is not int, type(1) != type("")]
    return [names, exact, [x for x in xs if type(x) is type(None)]]

# arguments: {"xs": [1, True, None, "a", [], {}]}
# result: [["int", "bool", "NoneType", "str", "list", "dict", "tuple", "set", "bytes", "Counter", "date", "Match", "ToolError", "KeyError"], [True, False, False, False, False, False, False, True, False, True, False, False, True, True], [None]]
---
# the largest size
import sys
from sys import maxsize

def t() -> Any:
    """Ask."""
    best = sys.maxsize
    for x in [3, 2]:
        best = min(best, x)
    return [best, maxsize == 2**63 - 1]

# result: [2, True]
---
# lambdas with names
square = lambda x: x * x

def t(xs: list) -> Any:
    """Map."""
    n = 2
    plus = lambda x, more=1: square(x) + n + more
    n = 3
    return [plus(1), plus(1, more=5), [plus(x) for x in xs], sorted(xs, key=lambda x: -plus(x)), list(map(square, xs))]

# arguments: {"xs": [2, 3]}
# result: [5, 9, [8, 13], [3, 2], [4, 9]]
---
# tables of functions
import operator

def _half(x, y):
    return x / 2 + y

OPERATIONS = {"+": operator.add, "max": max, "half": _half, "-": lambda a, b: a - b}

def t(names: list) -> Any:
    """Compute."""
    found = []
    first = "1"
    local = {"read": lambda p: tools.read_file(path=p), "size": lambda p: len(p) + first + later}
    first, later = 1, 1
    for name in names:
        if name in OPERATIONS:
            found.append(OPERATIONS[name](5, 3))
        elif name not in local:
            found.append({"a": lambda x: x * 2, "b": len}["a" if name else "b"](name))
        else:
            found.append(local[name]("ab"))
    try:
        local["missing"]("a")
    except KeyError as error:
        found.append(str(error))
    return found

# arguments: {"names": ["+", "max", "half", "-", "read", "size", "x", ""]}
# calls: read_file(path="ab") -> "x"
# result: [8, 5, 5.5, 2, "x", 4, "xx", 0, "'missing'"]
---
# an annotation alone makes a variable
def t(xs: list[int]) -> Any:
    """Add."""
    count: int
    sum: int
    def change():
        nonlocal count
        count = len(xs)
    def add():
        return sum(xs)
    change()
    if count > 9:
        sum = 1
    return add() if count > 5 else count
# arguments: {"xs": [1, 2]}
# result: 2
---
# a variable that is only annotated hides a built-in
def t(xs: list[int]) -> Any:
    """Add."""
    sum: int
    def add():
        return [sum, xs]  # raises: NameError "cannot access free variable 'sum' where it is not associated with a value in enclosing scope"
    return add()
# arguments: {"xs": [1, 2]}
