# a generator expression that a name holds until it is consumed
def t(xs: list) -> list:
    """Double."""
    ys = (x * 2 for x in xs)
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
# next on an iterator that a name holds, once
def t(xs: list) -> Any:
    """Find."""
    it = iter(xs)
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
    for x in (reversed(xs) if xs else xs):
        print(x)
    for x in map(str, xs) or []:  # error: 14 [lazy-value] "map(…) is lazy and must be consumed where it is made"
        print(x)
---
# lazy functions of modules, each held by a name until it is consumed
import csv
import io
import itertools
import re

def t(text: str) -> Any:
    """Use."""
    rows = csv.DictReader(io.StringIO(text))
    found = re.finditer("a", text)
    pairs = itertools.pairwise(text)
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
# finditer of a compiled pattern, held by a name
import re

WORD = re.compile(r"\w+")

def t(text: str) -> Any:
    """Use."""
    found = WORD.finditer(text)
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
    e = c.elements()
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
---
# a lazy value that a name holds, consumed in a for header, by another lazy value, in conditions
def t(text: str) -> Any:
    """Use."""
    parts = (p.strip() for p in text.split(","))
    long = (p for p in parts if len(p) > 1)
    out = []
    for p in long:
        out.append(p)
    found = map(len, out)
    if any(n > 3 for n in found):
        return out
    pairs = zip(text, out)
    return {a: b for a, b in pairs} if text else 0
---
# a lazy value that a name holds, consumed twice, in a loop, in another block, in a lambda, in another function, or never
def t(xs: list) -> Any:
    """Use."""
    a = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    print(list(a), list(a))
    b = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    for x in xs:
        print(list(b))
    c = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    if xs:
        print(list(c))
    d = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    print(sorted(xs, key=lambda x: x in d))
    e = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    print([x for x in xs if x in e], [[y for y in e] for x in xs])
    f = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    for f in xs:
        print(f)
    for x in xs:
        g = map(str, xs)  # error: 13 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    if xs:
        h = map(str, xs)  # error: 13 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    else:
        print(list(h))  # error: 20 [unassigned] "'h' has no value here"
    return None
---
# a lazy value that a name holds, while something that it reads changes
def _change(xs: list) -> None:
    xs.clear()

def t(xs: list, k: int, d: dict) -> Any:
    """Use."""
    a = (x + k for x in xs)  # error: 9 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
    k = 2
    print(list(a))
    b = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    xs.append(1)
    print(list(b))
    c = map(str, d["xs"])  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    d["xs"] = []
    print(list(c))
    e = enumerate(xs)  # error: 9 [lazy-value] "enumerate(…) is lazy and must be consumed where it is made"
    _change(xs)
    print(list(e))
    f = map(str, xs)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    print([xs.pop(), list(f)])
    g = (x for x in xs)
    h = map(str, g)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    for x in [1]:
        xs += [x]
    return list(h)
---
# a lazy value with effects, while something else has effects
def _read(path: str) -> str:
    return tools.read_file(path=path)

def t(paths: list[str]) -> Any:
    """Use."""
    a = (tools.read_file(path=p) for p in paths)  # error: 9 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
    print("reading")
    print(list(a))
    b = map(_read, paths)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    tools.write_file(path="a", content="b")
    print(list(b))
    c = map(_read, paths)
    out = {}
    for text in c:
        tools.write_file(path="a", content=text)
    d = map(str.upper, paths)
    print(_read("a"), out)
    return list(d)
---
# a name that is used in the header above the lazy value, or in a handler
def t(xs: list) -> Any:
    """Use."""
    for x in a:  # error: 14 [unassigned] "'a' has no value here"
        a = map(str, xs)  # error: 13 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    match xs:
        case [x] if list(b):  # error: 26 [unassigned] "'b' has no value here"
            b = map(str, xs)  # error: 17 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    try:
        c = map(str, xs)  # error: 13 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    except ValueError:
        print(list(c))  # error: 20 [unassigned] "'c' has no value here"
    return None
---
# a chain of lazy values is short
def t(xs: list) -> Any:
    """Use."""
    a = map(str, xs)
    b = map(str, a)
    c = map(str, b)
    d = map(str, c)
    e = map(str, d)
    f = map(str, e)
    g = map(str, f)
    h = map(str, g)
    i = map(str, h)
    j = map(str, i)
    k = map(str, j)  # error: 9 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    return list(k)
---
# a body of parallel can't consume what a name holds
def t(paths: list[str]) -> Any:
    """Use."""
    a = (p.strip() for p in paths)  # error: 9 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
    return parallel(tools.read_file(path=p) for p in a)
---
# a lazy value that reads the list that it extends
def t(xs: list) -> Any:
    """Use."""
    more = (x for x in xs)  # error: 12 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
    xs.extend(more)
    again = (x for x in xs)
    for x in again:
        xs.append(x)
    return xs
---
# groups of groupby that are consumed in their round
from itertools import groupby
import itertools

def _key(row: dict) -> str:
    return row["k"]

def t(rows: list[dict]) -> Any:
    """Group."""
    found = {}
    for key, group in groupby(sorted(rows, key=_key), _key):
        found[key] = sorted(row["n"] for row in group)
    for key, group in itertools.groupby(rows, key=lambda row: row["k"]):
        group = list(group)
        print(len(group), group[0])
    for group in found:
        print(group)
    pairs = [(key, list(g)) for key, g in groupby(map(str, rows))]
    sizes = {key: sum(1 for _ in g) for key, g in groupby(rows, _key) if next(g, None)}
    return [found, pairs, sizes, max((len(list(g)), k) for k, g in groupby("aab"))]
---
# groups of groupby that would be used too late
from itertools import groupby

def _size(group: Any) -> int:
    return len(list(group))

def t(rows: list[dict]) -> Any:
    """Group."""
    a = list(groupby(rows))  # error: 14 [group-value] "groupby(…) is lazy, and its groups end with the next one"
    b = groupby(rows)  # error: 9 [group-value] "groupby(…) is lazy, and its groups end with the next one"
    for pair in groupby(rows):  # error: 17 [group-value] "groupby(…) is lazy, and its groups end with the next one"
        print(pair)
    c, group = {}, None
    for key, group in groupby(rows):
        c[key] = group  # error: 18 [group-value] "'group' is a group of groupby(…), which must be consumed in its own round of the loop"
        c[key] = _size(group)  # error: 24 [group-value] "'group' is a group of groupby(…), which must be consumed in its own round of the loop"
        print(f"{group}")  # error: 18 [group-value] "'group' is a group of groupby(…), which must be consumed in its own round of the loop"
        parallel(tools.read_file(path=p) for p in group)  # error: 51 [group-value] "'group' is a group of groupby(…), which must be consumed in its own round of the loop"
        if key:
            group = []
        c[key] = group  # error: 18 [group-value] "'group' is a group of groupby(…), which must be consumed in its own round of the loop"
    d = [group for key, group in groupby(rows)]  # error: 10 [group-value] "'group' is a group of groupby(…), which must be consumed in its own round of the loop"
    e = parallel(tools.read_file(path="".join(g)) for k, g in groupby(rows))  # error: 47 [group-value] "'g' is a group of groupby(…), which must be consumed in its own round of the loop"
    return group  # error: 12 [group-value] "'group' is a group of groupby(…), which must be consumed in its own round of the loop"
---
# repeat takes a count
from itertools import repeat

def t(xs: list[int]) -> Any:
    """Repeat."""
    a = list(repeat("a", 3)) + list(repeat("a", times=3))
    b = list(map(pow, xs, repeat(2)))  # error: 27 [arguments] "repeat needs a count: it would never end"
    c = list(repeat(*xs))  # error: 14 [arguments] "repeat needs a count: it would never end"
    return repeat(1, 2)  # error: 12 [lazy-value] "repeat(…) is lazy and must be consumed where it is made"
