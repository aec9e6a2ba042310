# a generator expression bound to a name
def t(xs: list) -> list:
    """Double."""
    ys = (x * 2 for x in xs)  # error: 10 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
    return list(ys)
---
# map, filter, zip, enumerate and reversed bound or returned
def t(xs: list) -> Any:
    """Double."""
    a = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    b = filter(None, xs)  # error: 9 [lazy-value] "filter(…) is lazy and must be consumed where it is made"
    c = zip(xs, xs)  # error: 9 [lazy-value] "zip(…) is lazy and must be consumed where it is made"
    d = enumerate(xs)  # error: 9 [lazy-value] "enumerate(…) is lazy and must be consumed where it is made"
    e = [reversed(xs)]  # error: 10 [lazy-value] "reversed(…) is lazy and must be consumed where it is made"
    f = iter(xs)  # error: 9 [lazy-value] "iter(…) is lazy and must be consumed where it is made"
    return map(str, [a, b, c, d, e, f])  # error: 12 [lazy-value] "map(…) is lazy and must be consumed where it is made"
---
# the result of the fix is accepted
def t(xs: list) -> list:
    """Double."""
    return map(str, xs)  # error: 12 [lazy-value] "map(…) is lazy and must be consumed where it is made"
---
# lazy values that are consumed at once
def t(xs: list, d: dict) -> list:
    """Use."""
    for i, x in enumerate(xs):
        print(i, x)
    for a, b in zip(xs, reversed(xs)):
        print(a, b)
    total = sum(x * 2 for x in xs)
    best = max((x for x in xs if x), default=None)
    text = ", ".join(str(x) for x in xs)
    pairs = dict(zip(xs, xs))
    flat = [*map(str, xs), *(x for x in xs)]
    a, b, *rest = map(int, xs)
    found = 3 in (x for x in xs)
    xs.extend(x for x in pairs)
    d.update((str(k), v) for k, v in pairs.items())
    seen = set(x for x in xs)
    chained = list(map(str, filter(None, map(int, xs))))
    print(*map(str, xs))
    return [total, best, text, pairs, flat, a, b, rest, found, sorted(seen), chained, any(x for x in xs)]
---
# next on a fresh generator expression
def t(xs: list) -> Any:
    """Find."""
    first = next((x for x in xs if x > 1), None)
    head = next(iter(xs))
    return [first, head, next(reversed(xs), 0), next(map(str, xs))]
---
# next on an iterator that was stored
def t(xs: list) -> Any:
    """Find."""
    it = iter(xs)  # error: 10 [lazy-value] "iter(…) is lazy and must be consumed where it is made"
    return next(it)
---
# a generator expression as an argument of a helper
def _f(xs: Any) -> list:
    return list(xs)

def t(xs: list) -> list:
    """Use."""
    return _f(x for x in xs)  # error: 15 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
---
# a generator expression as an argument of a tool
def t(xs: list) -> Any:
    """Use."""
    return tools.tracker.create_issue(title="a", labels=(x for x in xs))
# error: 57 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
---
# len and indexing of a lazy value
def t(xs: list) -> Any:
    """Use."""
    return [len(map(str, xs)), zip(xs, xs)[0], list(filter(None, xs))[0]]
# error: 17 [lazy-value] "map(…) is lazy and must be consumed where it is made"
# error: 32 [lazy-value] "zip(…) is lazy and must be consumed where it is made"
---
# a lazy value in a condition, and printed
def t(xs: list) -> Any:
    """Use."""
    if map(str, xs):  # error: 8 [lazy-value] "map(…) is lazy and must be consumed where it is made"
        print(zip(xs))  # error: 15 [lazy-value] "zip(…) is lazy and must be consumed where it is made"
    return f"{map(str, xs)}"  # error: 15 [lazy-value] "map(…) is lazy and must be consumed where it is made"
---
# a conditional expression of lazy values
def t(xs: list) -> Any:
    """Use."""
    for x in (reversed(xs) if xs else xs):  # error: 15 [lazy-value] "reversed(…) is lazy and must be consumed where it is made"
        print(x)
    for x in map(str, xs) or []:  # error: 14 [lazy-value] "map(…) is lazy and must be consumed where it is made"
        print(x)
---
# lazy functions of modules
import csv
import io
import itertools
import re

def t(text: str) -> Any:
    """Use."""
    rows = csv.DictReader(io.StringIO(text))  # error: 12 [lazy-value] "DictReader(…) is lazy and must be consumed where it is made"
    found = re.finditer("a", text)  # error: 13 [lazy-value] "finditer(…) is lazy and must be consumed where it is made"
    pairs = itertools.pairwise(text)  # error: 13 [lazy-value] "pairwise(…) is lazy and must be consumed where it is made"
    return [list(rows), list(found), list(pairs)]
---
# lazy functions of modules, consumed
import csv
import io
import itertools
import re

def t(text: str) -> Any:
    """Use."""
    rows = list(csv.DictReader(io.StringIO(text)))
    spans = [m.span() for m in re.finditer("a", text)]
    for row in csv.reader(text.splitlines()):
        print(row)
    flat = list(itertools.chain.from_iterable([r.values() for r in rows]))
    first = list(itertools.islice(re.compile("b").finditer(text), 3))
    best = next(re.finditer("c", text), None)
    return [rows, spans, flat, len(first), best is None, ["".join(p) for p in itertools.permutations("ab")]]
---
# finditer of a compiled pattern, stored
import re

WORD = re.compile(r"\w+")

def t(text: str) -> Any:
    """Use."""
    found = WORD.finditer(text)  # error: 13 [lazy-value] "finditer(…) is lazy and must be consumed where it is made"
    return [m[0] for m in found]
---
# a lazy constant
NAMES = map(str, [1, 2])  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"

def t() -> Any:
    """Use."""
    return list(NAMES)
---
# keys, values and items are views, not lazy values
def t(d: dict) -> Any:
    """Use."""
    ks = d.keys()
    return [len(ks), sorted(d.values()), list(d.items())]
---
# Counter and its elements
from collections import Counter

def t(xs: list) -> Any:
    """Use."""
    c = Counter(x for x in xs)
    e = c.elements()  # error: 9 [lazy-value] "elements(…) is lazy and must be consumed where it is made"
    return [list(e), sorted(c.elements()), c.most_common(2)]
---
# sorted, list, tuple and range are not lazy
def t(xs: list) -> Any:
    """Use."""
    r = range(3)
    return [sorted(xs), tuple(xs), list(r), r[1]]
---
# a lazy start, initial value or default is returned, not consumed
from functools import reduce

def t(xs: list) -> Any:
    """Use."""
    a = sum(xs, (x for x in xs))  # error: 17 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
    b = reduce(lambda p, q: p, xs, (x for x in xs))  # error: 36 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
    c = dict.fromkeys(xs, map(str, xs))  # error: 27 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    return [a, b, c, sum(x for x in xs), reduce(lambda p, q: p, (x for x in xs)), dict.fromkeys(x for x in xs)]
---
# a lazy method is no callback
import re
from collections import Counter

WORD = re.compile("a")

def t(xs: list, ys: list) -> Any:
    """Use."""
    a = list(map(WORD.finditer, xs))  # error: 23 [function-value] "the method 'finditer' is lazy; it can't be a callback"
    b = list(map(Counter.elements, ys))  # error: 26 [function-value] "the method 'elements' is lazy; it can't be a callback"
    return [a, b]
