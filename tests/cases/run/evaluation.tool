# operands are evaluated from left to right
def _say(x: Any) -> Any:
    print(x)
    return x

def t() -> Any:
    """Evaluate."""
    return _say(1) + _say(2) * _say(3)
# prints: "1"
# prints: "2"
# prints: "3"
# result: 7
---
# arguments are evaluated from left to right
def _say(x: Any) -> Any:
    print(x)
    return x

def _f(a: int, b: int, c: int = 0) -> list:
    return [a, b, c]

def t() -> Any:
    """Evaluate."""
    return _f(_say(1), c=_say(2), b=_say(3))
# prints: "1"
# prints: "2"
# prints: "3"
# result: [1, 3, 2]
---
# a dict display evaluates key, value, key, value
def _say(x: Any) -> Any:
    print(x)
    return x

def t() -> Any:
    """Evaluate."""
    return {_say("a"): _say(1), _say("b"): _say(2)}
# prints: "a"
# prints: "1"
# prints: "b"
# prints: "2"
# result: {"a": 1, "b": 2}
---
# an assignment evaluates its value first, then its targets from left to right
def _say(x: Any) -> Any:
    print(x)
    return x

def t() -> Any:
    """Evaluate."""
    d = {}
    d[_say("a")] = d[_say("b")] = _say(1)
    return d
# prints: "1"
# prints: "a"
# prints: "b"
# result: {"a": 1, "b": 1}
---
# an augmented assignment evaluates its key once
def _key(log: list) -> str:
    log.append("k")
    return "n"

def t() -> Any:
    """Evaluate."""
    d, log = {"n": 1}, []
    d[_key(log)] += 5
    return [d, log]
# result: [{"n": 6}, ["k"]]
---
# an augmented assignment reads the target before the value
def _grow(xs: list) -> list:
    xs.append(9)
    return [1]

def t() -> Any:
    """Evaluate."""
    xs = [0]
    ys = xs
    xs += _grow(xs)
    return [xs, ys]
# result: [[0, 9, 1], [0, 9, 1]]
---
# += changes a list, + creates a new list
def t() -> Any:
    """Evaluate."""
    a = b = [1]
    a += [2]
    c = d = [1]
    c = c + [2]
    return [a, b, c, d]
# result: [[1, 2], [1, 2], [1, 2], [1]]
---
# i, xs[i] = … uses the new index
def t() -> Any:
    """Evaluate."""
    i, xs = 0, [10, 20]
    i, xs[i] = 1, 99
    return [i, xs]
# result: [1, [10, 99]]
---
# swapping
def t() -> Any:
    """Evaluate."""
    a, b, c = 1, 2, 3
    a, b, c = c, a, b
    return [a, b, c]
# result: [3, 1, 2]
---
# and and or return an operand and stop early
def _say(x: Any) -> Any:
    print(x)
    return x

def t() -> Any:
    """Evaluate."""
    return [_say(0) and _say(1), _say("") or _say("b"), not _say([]), None or 0 or [], 1 and 2 and 3]
# prints: "0"
# prints: ""
# prints: "b"
# prints: "[]"
# result: [0, "b", True, [], 3]
---
# a chained comparison evaluates its middle once, and stops early
def _say(x: Any) -> Any:
    print(x)
    return x

def t() -> Any:
    """Evaluate."""
    return [1 < _say(2) < 3, 3 < _say(1) < _say(5), 1 < 3 > 2, 1 == 1.0 == True]
# prints: "2"
# prints: "1"
# result: [True, False, True, True]
---
# in inside a chained comparison
def t() -> Any:
    """Evaluate."""
    return [1 in [1] == True, (1 in [1]) == True, 1 == 1 in [1]]
# result: [False, True, True]
---
# a conditional expression evaluates one branch
def _say(x: Any) -> Any:
    print(x)
    return x

def t() -> Any:
    """Evaluate."""
    return _say("a") if _say(0) else _say("b")
# prints: "0"
# prints: "b"
# result: "b"
---
# conditional expressions and lambdas nest to the right
def t() -> Any:
    """Evaluate."""
    return [1 if False else 2 if False else 3, (1 if True else 2) if False else 3]
# result: [3, 3]
---
# precedence of unary minus, power, not and comparison
def t() -> Any:
    """Evaluate."""
    return [-2 ** 2, 2 ** -1, 2 ** 3 ** 2, not 1 == 2, -7 // 2, ~5 & 3 | 8 ^ 1 << 2, 1 + 2 << 1]
# result: [-4, 0.5, 512, True, -4, 14, 6]
---
# is and ==
def t() -> Any:
    """Evaluate."""
    a = [1]
    b = a
    return [a is b, a == [1], a is not b, None is None, [] == (), 1 == 1.0, "1" == 1]
# result: [True, True, False, True, False, True, False]
---
# a walrus assigns in the function, also from within a comprehension
def t() -> Any:
    """Evaluate."""
    total, last = 0, None
    sums = [total := total + x for x in [1, 2, 3]]
    found = any((last := x) > 1 for x in [1, 2, 3])
    return [sums, total, found, last]
# result: [[1, 3, 6], 6, True, 2]
---
# a comprehension's variables are not visible outside
def t() -> Any:
    """Evaluate."""
    x = "kept"
    ys = [x for x in range(3)]
    return [x, ys]
# result: ["kept", [0, 1, 2]]
---
# a loop variable keeps its last value after the loop
def t() -> Any:
    """Evaluate."""
    i = None
    for i in range(3):
        pass
    return i
# result: 2
---
# comprehensions nest from left to right, with their conditions
def t() -> Any:
    """Evaluate."""
    return [
        [x + y for x in "ab" for y in "cd"],
        [(x, y) for x in range(4) if x % 2 for y in range(x) if y != 1],
        {k: v for k, v in [("a", 1), ("a", 2)]},
        sorted({x % 3 for x in range(9)}),
        [[y for y in range(x)] for x in range(3)],
    ]
# result: [["ac", "ad", "bc", "bd"], [[1, 0], [3, 0], [3, 2]], {"a": 2}, [0, 1, 2], [[], [0], [0, 1]]]
---
# a lambda sees the variable, not its value at the time
def t() -> Any:
    """Evaluate."""
    k = 1
    rows = [3, 1, 2]
    a = sorted(rows, key=lambda r: r * k)
    k = -1
    b = sorted(rows, key=lambda r: r * k)
    return [a, b]
# result: [[1, 2, 3], [3, 2, 1]]
---
# a generator expression's first iterable is evaluated at once, the rest as it runs
def _say(x: Any) -> Any:
    print(x)
    return [x]

def t() -> Any:
    """Evaluate."""
    return list((a, b) for a in _say("first") for b in _say("second"))
# prints: "first"
# prints: "second"
# result: [["first", "second"]]
---
# any and next stop at the first match
def _say(x: Any) -> Any:
    print(x)
    return x

def t() -> Any:
    """Evaluate."""
    return [any(_say(x) > 1 for x in [1, 2, 3]), next((_say(x) for x in [7, 8]), None), next(iter([]), "none")]
# prints: "1"
# prints: "2"
# prints: "7"
# result: [True, 7, "none"]
---
# zip and map stop at the end of the shortest argument
def t() -> Any:
    """Evaluate."""
    return [list(zip([1, 2, 3], "ab")), list(map(lambda a, b: a + b, [1, 2], [10, 20, 30])), list(enumerate("ab", 1))]
# result: [[[1, "a"], [2, "b"]], [11, 22], [[1, "a"], [2, "b"]]]
---
# strict zip
def t() -> Any:
    """Evaluate."""
    return list(zip([1, 2, 3], "ab", strict=True))  # raises: ValueError "zip() argument 2 is shorter than argument 1"
---
# unpacking with a star
def t() -> Any:
    """Evaluate."""
    a, *b, c = range(5)
    *d, e = "xy"
    (f, g), [h, *i] = (1, 2), [3]
    return [a, b, c, d, e, f, g, h, i]
# result: [0, [1, 2, 3], 4, ["x"], "y", 1, 2, 3, []]
---
# unpacking too few values
def t() -> Any:
    """Evaluate."""
    a, b, c = [1, 2]  # raises: ValueError "not enough values to unpack (expected 3, got 2)"
    return [a, b, c]
---
# unpacking too many values
def t() -> Any:
    """Evaluate."""
    a, b = [1, 2, 3]  # raises: ValueError "too many values to unpack (expected 2)"
    return [a, b]
---
# list and dict displays with stars
def t() -> Any:
    """Evaluate."""
    a, d = [1, 2], {"x": 1, "y": 2}
    return [[*a, 0, *a], (*a, *"z"), sorted({*a, 1}), {**d, "y": 3, **{"z": 4}}]
# result: [[1, 2, 0, 1, 2], [1, 2, "z"], [1, 2], {"x": 1, "y": 3, "z": 4}]
---
# a call with * and **
def _f(a: Any, b: Any = None, *, c: Any = None) -> list:
    return [a, b, c]

def t() -> Any:
    """Evaluate."""
    args, options = [1, 2], {"c": 3}
    return [_f(*args, **options), _f(*"x", b=2), _f(**{"a": 0})]
# result: [[1, 2, 3], ["x", 2, None], [0, None, None]]
---
# an assertion that succeeds, and one that fails
def t() -> Any:
    """Evaluate."""
    assert True, "not evaluated"
    assert [] == [1], f"empty: {1 + 1}"  # raises: AssertionError "empty: 2"
    return 1
---
# a function without a return returns None
def _f() -> None:
    pass

def t() -> Any:
    """Evaluate."""
    return [_f(), [].sort(), print("x")]
# prints: "x"
# result: [None, None, None]
---
# default arguments are evaluated once, and can't be changed
def _f(a: Any = (1, 2), b: Any = None) -> list:
    b = [] if b is None else b
    b.append(len(a))
    return b

def t() -> Any:
    """Evaluate."""
    return [_f(), _f(), _f(a="abc", b=[0])]
# result: [[2], [2], [0, 3]]
---
# the tool's own defaults and arguments
def t(a: int, b: str = "x", *, c: list[int] = None) -> Any:
    """Evaluate."""
    return [a, b, c]
# arguments: {"a": 1, "c": [1, 2]}
# result: [1, "x", [1, 2]]
---
# constants of the module are computed before the tool runs
import re

WORDS = re.compile(r"\w+")
SQUARES = [n * n for n in range(5)]
BIG = {k: v for k, v in zip("ab", SQUARES)}

def t(text: str) -> Any:
    """Evaluate."""
    return [WORDS.findall(text), SQUARES, BIG]
# arguments: {"text": "a bc, d"}
# result: [["a", "bc", "d"], [0, 1, 4, 9, 16], {"a": 0, "b": 1}]
---
# unpacking an unknown argument into a recursive helper
def _down(n: int) -> int:
    return 0 if n == 0 else _down(n - 1)

def t(d: dict) -> Any:
    """Evaluate."""
    try:
        return _down(3, **d)
    except TypeError:
        return "refused"
# arguments: {"d": {"__depth": -1000000}}
# result: "refused"
---
# unpacking the arguments of a recursive helper
def _down(n: int, step: int = 1) -> int:
    return 0 if n <= 0 else 1 + _down(**{"n": n - step, "step": step})

def t(d: dict) -> Any:
    """Evaluate."""
    return _down(**d)
# arguments: {"d": {"n": 9, "step": 2}}
# result: 5
---
# lazy values that names hold are made when they are consumed
def _shout(x: int) -> str:
    print("made", x)
    return str(x)

def t() -> Any:
    """Use."""
    xs, k = [1, 2, 3], 10
    a = map(_shout, xs)
    b = (y + "!" for y in a if y != "2")
    out = []
    for y in b:
        print("got", y)
        out.append(y)
    c = (k + x for x in xs)
    print("before")
    return [out, list(c), len(out)]
# prints: "made 1"
# prints: "got 1!"
# prints: "made 2"
# prints: "made 3"
# prints: "got 3!"
# prints: "before"
# result: [["1!", "3!"], [11, 12, 13], 2]
---
# an error of a lazy value that a name holds is raised where it is consumed
def t() -> Any:
    """Use."""
    xs = [2, 1, 0]
    try:
        a = (2 // x for x in xs)
        print("later")
        return list(a)
    except ZeroDivisionError:
        return "caught"
# prints: "later"
# result: "caught"
---
# a list grows while a name that reads it is consumed
def t() -> Any:
    """Use."""
    xs = [3, 1]
    more = (x + 1 for x in xs if x < 4)
    for x in more:
        xs.append(x)
    return xs
# result: [3, 1, 4, 2, 3, 4]
---
# methods of types
def t(rows: list[list[int]], text: str) -> Any:
    """Compute."""
    counts = {"a": 1}
    return [
        sorted(set.union(*map(set, rows))), sorted(set.intersection(set(rows[0]), *rows[1:])), dict.get(counts, "b", 0), list(dict.items(counts)),
        str.join("-", (str.upper(c) for c in text)), str.split(text, sep="b"), int.bit_length(255), list.index(rows[0], 2), float.is_integer(2.0),
    ]
# arguments: {"rows": [[1, 2], [2, 3]], "text": "abc"}
# result: [[1, 2, 3], [2], 0, [["a", 1]], "A-B-C", ["a", "c"], 8, 1, True]
---
# a method of another type
def t() -> Any:
    """Compute."""
    return set.union([1], [2])  # raises: TypeError "descriptor 'union' for 'set' objects doesn't apply to a 'list' object"
