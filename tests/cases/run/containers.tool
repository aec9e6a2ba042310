# sorting is stable, and reverse keeps equals in their order
def t() -> Any:
    """Sort."""
    rows = [["b", 1], ["a", 1], ["c", 0]]
    a = sorted(rows, key=lambda r: r[1])
    b = sorted(rows, key=lambda r: r[1], reverse=True)
    rows.sort()
    return [a, b, rows]
# result: [[["c", 0], ["b", 1], ["a", 1]], [["b", 1], ["a", 1], ["c", 0]], [["a", 1], ["b", 1], ["c", 0]]]
---
# keys of several parts
def t() -> Any:
    """Sort."""
    words = ["bb", "a", "ccc", "aa"]
    return [sorted(words, key=lambda w: (-len(w), w)), sorted(words, key=len), min(words, key=len), sorted(words, key=str.upper, reverse=True)]
# result: [["ccc", "aa", "bb", "a"], ["a", "bb", "aa", "ccc"], "a", ["ccc", "bb", "aa", "a"]]
---
# values that can't be compared
def t() -> Any:
    """Sort."""
    return sorted([1, "a"])  # raises: TypeError "'<' not supported between instances of 'str' and 'int'"
---
# methods of lists
def t() -> Any:
    """Collect."""
    xs = [3, 1]
    xs.append(2)
    xs.extend("ab")
    xs.insert(1, "x")
    last, first = xs.pop(), xs.pop(0)
    xs.remove("x")
    ys = xs.copy()
    ys.reverse()
    ys.clear()
    return [xs, ys, last, first, xs.index(2), [1, 1].count(1), [1] + [2], [0] * 2, 2 in xs, xs.index("a", 1)]
# result: [[1, 2, "a"], [], "b", 3, 1, 2, [1, 2], [0, 0], True, 2]
---
# slices are assigned and deleted
def t() -> Any:
    """Collect."""
    xs = list(range(6))
    xs[1:3] = ["a"]
    xs[-1:] = [8, 9]
    del xs[0]
    ys = list(range(6))
    ys[::2] = "xyz"
    del ys[1::2]
    xs[0:0] = [True]
    return [xs, ys]
# result: [[True, "a", 3, 4, 8, 9], ["x", "y", "z"]]
---
# assigning a slice of another length
def t() -> Any:
    """Collect."""
    xs = [1, 2, 3]
    xs[::2] = [1]  # raises: ValueError "attempt to assign sequence of size 1 to extended slice of size 2"
    return xs
---
# a slice is a shallow copy
def t() -> Any:
    """Collect."""
    import_ = [[1], 2]
    shallow = import_[:]
    shallow[0].append(9)
    shallow[1] = 3
    return [import_, shallow]
# result: [[[1, 9], 2], [[1, 9], 3]]
---
# copies, shallow and deep
import copy

def t() -> Any:
    """Collect."""
    a = {"k": [1]}
    b, c = a.copy(), copy.deepcopy(a)
    a["k"].append(2)
    return [a, b, c]
# result: [{"k": [1, 2]}, {"k": [1, 2]}, {"k": [1]}]
---
# a dict keeps the order of its first insertions
def t() -> Any:
    """Map."""
    d = {"b": 1, "a": 2}
    d["c"] = 3
    d["b"] = 4
    a = d.pop("a")
    d["a"] = a
    return [d, list(d), list(d.values()), d.popitem(), dict(sorted(d.items()))]
# result: [{"b": 4, "c": 3}, ["b", "c", "a"], [4, 3, 2], ["a", 2], {"b": 4, "c": 3}]
---
# methods of dicts
def t() -> Any:
    """Map."""
    d = {"a": 1}
    d.update({"b": 2}, c=3)
    d.update([("d", 4)])
    return [
        d.get("x"), d.get("x", 0), d.setdefault("e", []), d.setdefault("a", 9), d | {"a": 0}, "a" in d, len(d),
        dict.fromkeys("ab", 0), dict(x=1), dict([("k", "v")]), list(d.items())[0], d.pop("zz", None), {**d, "f": 6} == d,
        list(reversed({"p": 1, "q": 2})), {"a": 1} == {"a": 1.0},
    ]
# result: [None, 0, [], 1, {"a": 0, "b": 2, "c": 3, "d": 4, "e": []}, True, 5, {"a": 0, "b": 0}, {"x": 1}, {"k": "v"}, ["a", 1], None, False, ["q", "p"], True]
---
# reading a missing key raises KeyError
def t() -> Any:
    """Map."""
    d = {"a": 1}
    del d["a"]
    return d["a"]  # raises: KeyError "'a'"
---
# 1, 1.0 and True are one key, and the first key stays
def t() -> Any:
    """Map."""
    d = {1: "int"}
    d[True] = "bool"
    d[1.0] = "float"
    return [len(d), [repr(k) for k in d], d[1]]
# result: [1, ["1"], "float"]
---
# keys that are not text can't leave the program
def t(key: Any) -> Any:
    """Map."""
    return {"a": {key: "x"}}
# arguments: {"key": 1}
# raises: not_json "the result holds the key 1 at ['a'], which can't leave the program: keys are strings: convert them with str(…)"
---
# a list as a key
def t(key: Any) -> Any:
    """Map."""
    return {key: 2}  # raises: TypeError "unhashable type: 'list'"
# arguments: {"key": [1]}
---
# counting and grouping with dicts
def t() -> Any:
    """Map."""
    words = "the cat the dog a cat the".split()
    counts, groups = {}, {}
    for w in words:
        counts[w] = counts.get(w, 0) + 1
        groups.setdefault(len(w), []).append(w)
    top = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:2]
    return [counts, {str(k): v for k, v in groups.items()}, top, max(counts, key=counts.get)]
# result: [{"the": 3, "cat": 2, "dog": 1, "a": 1}, {"3": ["the", "cat", "the", "dog", "cat", "the"], "1": ["a"]}, [["the", 3], ["cat", 2]], "the"]
---
# Counter, defaultdict, OrderedDict and deque
from collections import Counter, OrderedDict, defaultdict, deque

def t() -> Any:
    """Map."""
    c = Counter("abracadabra")
    c.update("bb")
    c.subtract({"a": 1})
    d = defaultdict(list)
    d["x"].append(1)
    missing = d["y"]
    o = OrderedDict([("a", 1), ("b", 2)])
    o.move_to_end("a")
    q = deque([1, 2, 3], maxlen=3)
    q.append(4)
    q.appendleft(0)
    q.rotate(1)
    return [c.most_common(2), c["zzz"], c.total(), Counter(a=2) + Counter(a=1, b=1), d, missing, o, list(q), q.popleft(), (Counter("aab") - Counter("ab"))]
# result: [[["a", 4], ["b", 4]], 0, 12, {"a": 3, "b": 1}, {"x": [1], "y": []}, [], {"b": 2, "a": 1}, [3, 0, 2], 3, {"a": 1}]
---
# a deque can't leave the program
from collections import deque

def t() -> Any:
    """Map."""
    return {"q": deque()}
# raises: not_json "the result holds a deque at ['q'], which can't leave the program: list(…) makes a list of it"
---
# sets
def t() -> Any:
    """Unite."""
    a, b = {1, 2, 3}, {2, 3, 4}
    c = a.copy()
    c.add(9)
    c.discard(7)
    a |= {5}
    return [sorted(a | b), sorted(a & b), sorted(a - b), sorted(a ^ b), a >= {1}, 2 in a, len({1, True, 1.0}), sorted(c), {1}.isdisjoint({2}), frozenset([1]) == {1}, bool(set())]
# result: [[1, 2, 3, 4, 5], [2, 3], [1, 5], [1, 4, 5], True, True, 1, [1, 2, 3, 9], True, True, False]
---
# a set can't leave the program
def t() -> Any:
    """Unite."""
    tags = {}
    tags["tags"] = {"a"}
    return tags
# raises: not_json "the result holds a set at ['tags'], which can't leave the program: sorted(…) makes a list of it"
---
# tuples become lists when they leave the program
def t() -> Any:
    """Cross."""
    return {"a": (1, (2, [3, ()])), "b": list(zip("xy", (1, 2)))}
# result: {"a": [1, [2, [3, []]]], "b": [["x", 1], ["y", 2]]}
---
# tuples stay tuples inside a program
def t() -> Any:
    """Cross."""
    x = (1, 2)
    return [isinstance(x, tuple), x == [1, 2], x + (3,), (1,) * 2, x < (1, 3), (5), (5,), {x: "k"}[1, 2], x.index(2), x.count(1)]
# result: [True, False, [1, 2, 3], [1, 1], True, 5, [5], "k", 1, 1]
---
# a tuple can't be changed
import copy

def t() -> Any:
    """Cross."""
    x = copy.copy((1, [2]))
    x[1].append(3)
    x[0] = 9  # raises: TypeError "'tuple' object does not support item assignment"
    return x
---
# += on a list in a tuple changes it and raises
def t() -> Any:
    """Cross."""
    x = ([1],)
    try:
        x[0] += [2]
    except TypeError as e:
        return [x, str(e)]
# result: [[[1, 2]], "'tuple' object does not support item assignment"]
---
# a list that contains itself
def t() -> Any:
    """Cross."""
    xs = []
    ys = [xs]
    xs.append(ys)
    return xs
# raises: result_limit "the result nests deeper than 200 levels, or holds itself"
---
# a value that occurs twice is copied when it leaves the program
def t() -> Any:
    """Cross."""
    x = [1]
    return [x, x]
# result: [[1], [1]]
---
# ranges and views are converted to lists
def t() -> Any:
    """Cross."""
    d = {"a": 1}
    return [list(range(2)), list(d.keys()), list(d.items())]
# result: [[0, 1], ["a"], [["a", 1]]]
---
# a view can't leave the program
def t() -> Any:
    """Cross."""
    found = []
    found.append({"a": 1}.keys())
    return found
# raises: not_json "the result holds a dict_keys at [0], which can't leave the program: list(…) makes a list of it"
---
# views show later changes of their dict
def t() -> Any:
    """Cross."""
    d = {"a": 1}
    ks = d.keys()
    d["b"] = 2
    return [len(ks), "b" in ks, sorted(ks & {"b", "c"})]
# result: [2, True, ["b"]]
---
# TypedDicts are dicts
class Row(TypedDict):
    name: str
    size: int

def _row(line: str) -> Row:
    name, size = line.split()
    return Row(name=name, size=int(size))

def t() -> list[Row]:
    """Cross."""
    rows = [_row("a 1"), {"name": "b", "size": 2}]
    rows[0]["size"] += 1
    return rows
# result: [{"name": "a", "size": 2}, {"name": "b", "size": 2}]
---
# isinstance of the types
def t() -> Any:
    """Ask."""
    return [isinstance(1, int), isinstance(True, int), isinstance(1, float), isinstance("", (int, str)), isinstance(None, dict | list), isinstance([], (tuple, (list, set))), isinstance(ToolError("x"), ToolError)]
# result: [True, True, False, True, False, True, True]
---
# truth
def t() -> Any:
    """Ask."""
    return [bool(x) for x in [0, 0.0, "", " ", [], [0], {}, {"a": 0}, None, (), "False", 1]]
# result: [False, False, False, True, False, True, False, True, False, False, True, True]
---
# constant sets have CPython's order
def _f() -> Any:
    return [str({41, "bz", -36, 17}), [x for x in {-6, 75, -37, 14, 57, 4, "bx"}], list(map(str, {8, 0, 16, 24, 32}))]

def t() -> Any:
    """Order."""
    print({41, "bz", -36, 17})
    for x in {-6, 75, -37, 14, 57, 4, "bx"}:
        print(x)
    return [_f(), sorted({3, 1, 2}), 3 in {1, 2, 3}]
# prints: "{41, -36, 'bz', 17}"
# prints: "4"
# prints: "bx"
# prints: "75"
# prints: "14"
# prints: "57"
# prints: "-6"
# prints: "-37"
# result: [["{41, -36, 'bz', 17}", [4, "bx", 75, 14, 57, -6, -37], ["0", "32", "16", "8", "24"]], [1, 2, 3], True]
---
# a defaultdict that makes constants
import copy
from collections import Counter, defaultdict

def t(words: list[str]) -> Any:
    """Group."""
    pairs = defaultdict(lambda: [0, 0])
    nested = defaultdict(lambda: defaultdict(lambda: {"n": 0}))
    least = defaultdict(lambda: float("inf"))
    letters = defaultdict(Counter)
    for word in words:
        pairs[word][0] += 1
        nested[word[0]][word]["n"] += len(word)
        least[word[0]] = min(least[word[0]], len(word))
        letters[word[0]].update(word)
    other = copy.deepcopy(nested)
    other["z"]["y"]["n"] = 1
    return [pairs, nested, least, letters, "z" in nested, len(other), pairs["none"] is pairs["none"], pairs["a"] is pairs["b"]]
# arguments: {"words": ["ant", "bee", "ape", "ant"]}
# result: [{"ant": [2, 0], "bee": [1, 0], "ape": [1, 0], "none": [0, 0], "a": [0, 0], "b": [0, 0]}, {"a": {"ant": {"n": 6}, "ape": {"n": 3}}, "b": {"bee": {"n": 3}}}, {"a": 3, "b": 3}, {"a": {"a": 3, "n": 2, "t": 2, "p": 1, "e": 1}, "b": {"b": 1, "e": 2}}, False, 3, True, False]
