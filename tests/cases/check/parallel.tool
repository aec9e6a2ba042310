# the two forms of parallel
def t(paths: list[str]) -> Any:
    """Read."""
    texts = parallel(tools.read_file(path=p) for p in paths)
    a, b = parallel(tools.read_file(path="a"), tools.count_words(path="b"))
    return [texts, a, b]
---
# parallel without arguments, with named and with unpacked arguments
def t(paths: list[str]) -> Any:
    """Read."""
    a = parallel()  # error: 9 [parallel] "parallel takes one generator expression, or calls side by side"
    b = parallel(calls=[tools.read_file(path=p) for p in paths])
# error: 9 [parallel] "parallel takes one generator expression, or calls side by side"
    c = parallel(*[tools.read_file(path=p) for p in paths])  # error: 9 [parallel] "parallel takes one generator expression, or calls side by side"
    return [a, b, c]
---
# a list instead of the calls
def t(paths: list[str]) -> Any:
    """Read."""
    texts = [tools.read_file(path=p) for p in paths]
    a = parallel(texts)  # error: 18 [parallel] "parallel takes the calls themselves, not a list of results"
    return [a, parallel([tools.read_file(path=p) for p in paths])]  # error: 25 [parallel] "parallel takes the calls themselves, not a list of results"
---
# lambdas and functions instead of calls
def _read(p: str) -> str:
    return tools.read_file(path=p)

def t(paths: list[str]) -> Any:
    """Read."""
    a = parallel(lambda: _read("a"), lambda: _read("b"))
# error: 18 [lambda-value] "parallel takes the calls themselves, not lambdas"
# error: 38 [lambda-value] "parallel takes the calls themselves, not lambdas"
    return [a, parallel(_read, paths)]  # error: 25 [function-value] "the function '_read' can't be used as a value"
---
# parallel is not a value
def t(paths: list[str]) -> Any:
    """Read."""
    p = parallel  # error: 9 [parallel] "'parallel' is syntax, not a value: it must be called"
    return [p, list(map(parallel, paths))]  # error: 25 [parallel] "'parallel' is syntax, not a value: it must be called"
---
# a generator expression next to another argument
def t(paths: list[str]) -> Any:
    """Read."""
    return parallel((tools.read_file(path=p) for p in paths), tools.read_file(path="a"))
# error: 21 [parallel] "parallel takes one generator expression alone, or calls side by side"
---
# a body that changes something outside
def t(paths: list[str]) -> Any:
    """Read."""
    out = []
    parallel(out.append(tools.read_file(path=p)) for p in paths)
# error: 14 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    return out
---
# a helper that changes its argument
def _read(p: str, out: dict) -> None:
    out[p] = tools.read_file(path=p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"

def t(paths: list[str]) -> Any:
    """Read."""
    out = {}
    parallel(_read(p, out) for p in paths)
    return out
---
# a helper with its own containers
def _read(p: str) -> dict:
    lines = tools.read_file(path=p).splitlines()
    counts = {}
    words: list[str] = []
    for line in lines:
        counts[line] = counts.get(line, 0) + 1
        words.append(line)
    words.sort()
    n = 0
    n += 1
    total = len(lines)
    total += len(words)
    return {"counts": counts, "words": words, "n": n, "total": total}

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_read(p) for p in paths)
---
# a helper with try
def _read(p: str) -> dict:
    try:
        return {"path": p, "text": tools.read_file(path=p)}
    except ToolError as e:
        return {"path": p, "error": e.code}

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_read(p) for p in paths)
---
# a helper that accumulates text
def _read(p: str) -> str:
    text = ""
    for line in tools.read_file(path=p).splitlines():
        text += line.strip()
        text = text + "\n"
    count = 0
    for c in text:
        count += len(c)
        count -= 1
    return text

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_read(p) for p in paths)
---
# a helper that uses a counter and a set of its own
from collections import Counter, defaultdict

def _words(p: str) -> list:
    counts = Counter()
    groups = defaultdict(list)
    other = {}
    seen = set()
    for word in tools.read_file(path=p).split():
        counts[word] += 1
        groups[len(word)].append(word)
        other.setdefault(word[0], []).append(word)
        other[word[0]].sort()
        if word not in seen:
            seen.add(word)
    return counts.most_common(3)

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_words(p) for p in paths)
---
# containers that a helper creates side by side
def _words(p: str) -> Any:
    words, word, counts = [], "", {}
    for c in tools.read_file(path=p):
        if c.isspace():
            words.append(word)
            word = ""
        else:
            word += c
    counts.setdefault(len(words), []).append(word)
    return [words, counts]

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_words(p) for p in paths)
---
# containers side by side, of which one came from outside
def _read(p: str, out: list) -> str:
    rows, other = [], out
    rows.append(p)
    other.append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    again, (again, more) = [], (out, [])
    again.append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    both, by = {"out": out}, {}
    both["out"].append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    by["a"], by["b"] = [], out
    by["a"].append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    return tools.read_file(path=p)

def t(paths: list[str]) -> Any:
    """Read."""
    out = []
    return parallel(_read(p, out) for p in paths)
---
# items of a local container that came from outside
def _read(p: str, out: list) -> str:
    rows = [out]
    rows[0].append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    by = {}
    by["out"] = out
    by["out"].append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    a, by["y"], out[0] = 1, 2, p  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    heads = {}
    heads["b"], rows[0] = [1], []
    heads["b"].append(1)
    by.setdefault("x", out).append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    return tools.read_file(path=p)

def t(paths: list[str]) -> Any:
    """Read."""
    out = []
    return parallel(_read(p, out) for p in paths)
---
# a helper of a helper that changes its argument
def _add(out: list, x: str) -> None:
    out.append(x)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"

def _read(p: str) -> list:
    out = []
    _add(out, tools.read_file(path=p))
    return out

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_read(p) for p in paths)
---
# a walrus in a body
def t(paths: list[str]) -> Any:
    """Read."""
    return parallel((text := tools.read_file(path=p)) for p in paths)
# error: 22 [parallel] "a walrus in a parallel body would be shared between the bodies"
---
# a module-level container
SEEN = []

def _read(p: str) -> str:
    SEEN.append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    return tools.read_file(path=p)

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_read(p) for p in paths)
---
# outside parallel a helper may change its argument
def _read(p: str, out: dict) -> None:
    out[p] = tools.read_file(path=p)

def t(paths: list[str]) -> Any:
    """Read."""
    out = {}
    for p in paths:
        _read(p, out)
    return out
---
# a condition in the header that calls a tool
def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(tools.read_file(path=p) for p in paths if tools.count_words(path=p) > 3)
# error: 63 [parallel] "only the body of a parallel may call tools, not the part that chooses its items"
---
# the first iterable may call a tool
def t(path: str) -> Any:
    """Read."""
    return parallel(tools.read_file(path=e["path"]) for e in tools.list_directory(path=path) if e["type"] == "file")
---
# parallel in a body of parallel
def _both(p: str) -> list:
    return parallel(tools.read_file(path=q) for q in [p, p])

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_both(p) for p in paths)
---
# parallel is not imported
import asyncio  # error: 8 [unknown-module] "the module 'asyncio' can't be imported"
from concurrent.futures import ThreadPoolExecutor  # error: 1 [unknown-module] "the module 'concurrent.futures' can't be imported"

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(tools.read_file(path=p) for p in paths)
---
# changing what a comprehension variable holds
def t(rows: list[list]) -> Any:
    """Read."""
    return parallel(row.pop() for row in rows)
# error: 21 [parallel-change] "inside parallel only containers that the body created itself may be changed"
---
# bodies that only compute
def t(rows: list[list]) -> Any:
    """Read."""
    return parallel(sum(row) for row in rows)
---
# a set updated in place with an augmented assignment
def _once(seen: set, p: str) -> int:
    n = len(seen)
    tools.read_file(path=p)
    seen |= {p}  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    return n

def t(paths: list[str]) -> Any:
    """Read."""
    seen: set = set()
    return parallel(_once(seen, p) for p in paths)
---
# a list extended or repeated in place
def _once(seen: list, p: str) -> int:
    tools.read_file(path=p)
    seen += "x"  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    seen *= 2  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    return len(seen)

def t(paths: list[str]) -> Any:
    """Read."""
    seen: list = []
    return parallel(_once(seen, p) for p in paths)
---
# augmented assignment of numbers and text
def _read(n: int, p: str) -> str:
    text = tools.read_file(path=p).strip()
    n += 1
    n //= 2
    text += p * n
    return text

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(_read(3, p) for p in paths)
---
# a comprehension variable with the name of a local container
def _read(rows: list, p: str) -> list:
    row: list = []
    tools.read_file(path=p)
    row.append(p)  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    return [row.pop() for row in rows]  # error: 13 [parallel-change] "inside parallel only containers that the body created itself may be changed"

def t(paths: list[str], rows: list) -> Any:
    """Read."""
    return parallel(_read(rows, p) for p in paths)
---
# a callback that changes its argument
import heapq

def _read(heaps: list, p: str) -> list:
    tools.read_file(path=p)
    return list(map(heapq.heappop, heaps))  # error: 21 [parallel-change] "inside parallel only containers that the body created itself may be changed"

def t(paths: list[str], heaps: list) -> Any:
    """Read."""
    return parallel(_read(heaps, p) for p in paths)
---
# reading from a stream changes it
import io

def _read(lines: Any, p: str) -> str:
    tools.read_file(path=p)
    return lines.readline()  # error: 12 [parallel-change] "inside parallel only containers that the body created itself may be changed"

def t(paths: list[str]) -> Any:
    """Read."""
    lines = io.StringIO("a")
    return parallel(_read(lines, p) for p in paths)
---
# a condition in the header that changes something
def t(paths: list[str]) -> Any:
    """Read."""
    seen: list = []
    return parallel(tools.read_file(path=p) for p in paths if not seen.append(p))
# error: 67 [parallel-change] "inside parallel only containers that the body created itself may be changed"
---
# a condition in the header that assigns
def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(tools.read_file(path=p) + q for p in paths if (q := p))
# error: 68 [parallel] "a walrus in a parallel body would be shared between the bodies"
---
# a condition in the header whose helper calls a tool
def _long(p: str) -> bool:
    return len(tools.read_file(path=p)) > 3

def t(paths: list[str]) -> Any:
    """Read."""
    return parallel(tools.read_file(path=p) for p in paths if _long(p))
# error: 63 [parallel] "only the body of a parallel may call tools, not the part that chooses its items"
---
# a header that assigns to an item
def t(paths: list[str]) -> Any:
    """Read."""
    at: dict = {}
    return parallel(tools.read_file(path=at["p"]) for at["p"] in paths)
# error: 51 [parallel-change] "inside parallel only containers that the body created itself may be changed"
---
# the second for of the header may not call a tool
def t(folders: list[str]) -> Any:
    """Read."""
    return parallel(tools.read_file(path=e["path"]) for f in folders for e in tools.list_directory(path=f))
# error: 79 [parallel] "only the body of a parallel may call tools, not the part that chooses its items"
---
# a local container that gets items from outside
def _read(groups: dict, p: str) -> dict:
    own = {}
    own |= groups
    own[p].append(tools.read_file(path=p))  # error: 5 [parallel-change] "inside parallel only containers that the body created itself may be changed"
    return own

def t(paths: list[str], groups: dict) -> Any:
    """Read."""
    return parallel(_read(groups, p) for p in paths)
