# an unknown tool gets the nearest name
def t(path: str) -> str:
    """Read."""
    return tools.read_flie(path=path)  # error: 12 [unknown-tool] "no tool named 'read_flie'; did you mean 'read_file'?"
---
# an unknown tool without a similar name
def t(path: str) -> str:
    """Read."""
    return tools.frobnicate(path=path)  # error: 12 [unknown-tool] "no tool named 'frobnicate'"
---
# a helper is called without the prefix tools
def _rows(text: str) -> list:
    return text.splitlines()

def t(text: str) -> list:
    """Split."""
    return tools._rows(text)  # error: 12 [unknown-tool] "'_rows' is a helper of this source; call it without tools."
---
# an unknown parameter gets the nearest name
def t(path: str) -> str:
    """Read."""
    return tools.read_file(pth=path)  # error: 28 [tool-arguments] "read_file has no parameter 'pth'; did you mean 'path'?"
---
# an unknown parameter in addition to all required ones
def t(path: str) -> str:
    """Read."""
    return tools.read_file(path=path, mode="r")  # error: 39 [tool-arguments] "read_file has no parameter 'mode'"
---
# missing arguments
def t(path: str) -> dict:
    """Write."""
    return tools.write_file()  # error: 12 [tool-arguments] "write_file needs 'path' and 'content'"
---
# one missing argument
def t(path: str) -> dict:
    """Write."""
    return tools.write_file(path)  # error: 12 [tool-arguments] "write_file needs 'content'"
---
# positional arguments follow the order of the parameters
def t(path: str) -> dict:
    """Write."""
    return tools.write_file(path, "text")
---
# too many positional arguments
def t(path: str) -> str:
    """Read."""
    return tools.read_file(path, 1, 9, "utf-8", True)  # error: 49 [tool-arguments] "read_file takes 4 arguments"
---
# an argument given by position and by name
def t(path: str) -> str:
    """Read."""
    return tools.read_file(path, path=path)  # error: 34 [tool-arguments] "the argument 'path' is given twice"
---
# arguments can't be unpacked into a tool
def t(args: list, options: dict) -> list:
    """Read."""
    a = tools.read_file(*args)  # error: 25 [tool-star] "a tool's arguments can't be unpacked with *"
    return [a, tools.read_file(**options)]  # error: 32 [tool-star] "a tool's arguments can't be unpacked with **"
---
# a tool is not a value
def t(path: str) -> Any:
    """Read."""
    f = tools.read_file  # error: 9 [tools-value] "'tools' is used without a call"
    return f
---
# tools itself is not a value
def t(path: str) -> Any:
    """Read."""
    x = tools  # error: 9 [tools-value] "'tools' is used without a call"
    return [x, tools["read_file"]]  # error: 16 [tools-value] "'tools' is used without a call"
---
# a tool can't be a callback
def t(paths: list[str]) -> list:
    """Read."""
    return list(map(tools.read_file, paths))  # error: 21 [tools-value] "'tools' is used without a call"
---
# an attribute of a tool
def t(path: str) -> Any:
    """Read."""
    return tools.read_file.name  # error: 12 [tools-value] "'tools' is used without a call"
---
# a tool can't call itself
def t(path: str) -> str:
    """Read."""
    return tools.t(path=path)  # error: 12 [self-call] "the tool 't' calls itself through tools"
---
# the agent's tools can't be called
def t(path: str) -> Any:
    """Define."""
    tools.define_tool(name=path)  # error: 5 [meta-tool] "'define_tool' is for the agent; a program can't call it"
    tools.run_tool(name=path)  # error: 5 [meta-tool] "'run_tool' is for the agent; a program can't call it"
    tools.check_tool(name=path)  # error: 5 [meta-tool] "'check_tool' is for the agent; a program can't call it"
    tools.search_tools(name=path)  # error: 5 [meta-tool] "'search_tools' is for the agent; a program can't call it"
    tools.describe_tool(name=path)  # error: 5 [meta-tool] "'describe_tool' is for the agent; a program can't call it"
    tools.remove_tool(name=path)  # error: 5 [meta-tool] "'remove_tool' is for the agent; a program can't call it"
    return path
---
# a mounted server's tool
def t(title: str) -> Any:
    """Open an issue."""
    return tools.tracker.create_issue(title=title, labels=["bug"])
---
# an unknown tool of a mounted server
def t(title: str) -> Any:
    """Open an issue."""
    return tools.tracker.create_isue(title=title)
# error: 12 [unknown-tool] "no tool named 'tracker.create_isue'; did you mean 'tracker.create_issue'?"
---
# saved tools are called like primitives
def t(path: str) -> list:
    """Count."""
    return [tools.count_words(path=path), tools.summarise(path), tools.summarise(path=path, limit=3)]
---
# a method of a tool's output
def t(path: str) -> list:
    """Count."""
    return tools.read_file(path=path).splitlines()
---
# a helper's arguments must match its parameters
def _join(a: str, b: str = "", *, sep: str = " ") -> str:
    return a + sep + b

def t(a: str) -> list:
    """Join."""
    return [
        _join(a),
        _join(a, a, sep=","),
        _join(),  # error: 9 [arguments] "_join needs 'a'"
        _join(a, a, a),  # error: 21 [arguments] "_join takes 2 positional arguments"
        _join(a, a=a),  # error: 18 [arguments] "the argument 'a' is given twice"
        _join(a, c=a),  # error: 18 [arguments] "_join has no parameter 'c'"
        _join(a, sep=a, b=a),
        _join(*[a, a]),
        _join(**{"a": a}),
    ]
---
# a helper's missing keyword
def _join(a: str, *, sep: str) -> str:
    return a + sep

def t(a: str) -> str:
    """Join."""
    return _join(a)  # error: 12 [arguments] "_join needs 'sep'"
---
# the number of arguments of built-ins
def t(xs: list) -> list:
    """Call."""
    return [len(), len(xs, xs), isinstance(xs), divmod(1), abs(1, 2), range()]
# error: 13 [arguments] "len needs 1 argument"
# error: 28 [arguments] "len takes at most 1 argument"
# error: 33 [arguments] "isinstance needs 2 arguments"
# error: 49 [arguments] "divmod needs 2 arguments"
# error: 67 [arguments] "abs takes at most 1 argument"
# error: 71 [arguments] "range needs 1 argument"
---
# the keyword arguments of built-ins
def t(xs: list) -> list:
    """Call."""
    a = sorted(xs, reverse=True, key=len)
    b = sorted(xs, cmp=len)
# error: 20 [arguments] "sorted has no argument 'cmp' here"
# error: 24 [function-value] "the function 'len' can't be used as a value"
    c = max(xs, default=0)
    d = enumerate(xs, start=1)  # error: 9 [lazy-value] "enumerate(…) is lazy and must be consumed where it is made"
    e = int("ff", base=16)
    f = round(1.5, ndigits=0)
    g = sum(xs, start=1)
    h = dict(xs, a=1, **{"b": 2})
    i = list(zip(xs, xs, strict=True))
    j = str(1, encoding="utf-8")
    print(xs, sep=",", end="", file=a)  # error: 32 [arguments] "print has no argument 'file' here"
    return [a, b, c, d, e, f, g, h, i, j]
---
# print with flush
def t(xs: list) -> None:
    """Say."""
    print("…", flush=True)  # error: 16 [arguments] "print has no argument 'flush' here"
---
# open with keyword arguments is refused too
def t(xs: list) -> str:
    """Say."""
    return open("x", mode="r")  # error: 12 [outside-name] "'open' is not in the language"
---
# arguments unpacked into built-ins
def t(xs: list, options: dict) -> list:
    """Call."""
    print(*xs, sep="\n")
    return [max(*xs), dict(**options), range(*xs), list(zip(*xs))]
---
# a value can't be called
def t(f: str) -> Any:
    """Call."""
    return f(1)  # error: 12 [not-callable] "'f' is a value; only functions named in the source can be called"
---
# a constant can't be called
LIMIT = 1

def t(f: str) -> Any:
    """Call."""
    return LIMIT(1)  # error: 12 [not-callable] "'LIMIT' is a value; only functions named in the source can be called"
---
# an item, a result, a literal or a lambda can't be called
def _f(x: int) -> int:
    return x

def t(xs: list) -> Any:
    """Call."""
    a = xs[0](1)  # error: 9 [not-callable] "only names and methods can be called"
    b = _f(1)(2)  # error: 9 [not-callable] "only names and methods can be called"
    c = "text"(1)  # error: 9 [not-callable] "only names and methods can be called"
    d = (lambda x: x)(1)  # error: 10 [not-callable] "a lambda can't be called directly"
    return [a, b, c, d]
---
# an expression that chooses a function can't be called
def _f(x: int) -> int:
    return x

def t(xs: list) -> Any:
    """Call."""
    return (len if xs else _f)(xs)
# error: 13 [function-value] "the function 'len' can't be used as a value"
# error: 13 [not-callable] "only names and methods can be called"
# error: 28 [function-value] "the function '_f' can't be used as a value"
---
# tool and example are decorators
def t(xs: list) -> Any:
    """Call."""
    return tool(xs)  # error: 12 [not-callable] "'tool' is used only as @tool(…) above the tool"
---
# a TypedDict is called with its fields as named arguments
class Row(TypedDict):
    name: str
    size: int

def t() -> Row:
    """Make."""
    a = Row(name="a", size=1)
    b = Row("a", 1)  # error: 13 [arguments] "Row takes its fields by name"
    c = Row(name="a", sise=1)  # error: 23 [arguments] "Row has no field 'sise'; did you mean 'size'?"
    return [a, b, c][0]
---
# functions of modules: named arguments
import json
import re
from math import isclose

def t(xs: list) -> list:
    """Call."""
    return [
        json.dumps(xs, indent=2, sort_keys=True, default=str),
        json.dumps(xs, cls=xs),  # error: 24 [arguments] "json.dumps has no argument 'cls' here"
        json.loads("1", object_hook=len),
# error: 25 [arguments] "json.loads has no argument 'object_hook' here"
# error: 37 [function-value] "the function 'len' can't be used as a value"
        json.loads("1", parse_float=str),
# error: 25 [arguments] "json.loads has no argument 'parse_float' here"
# error: 37 [function-value] "the type 'str' can't be used as a value"
        re.sub("a", "b", "c", flags=re.I, count=1),
        isclose(1.0, 1.1, rel_tol=0.1),
        isclose(a=1.0, b=1.1),
# error: 17 [arguments] "math.isclose has no argument 'a' here"
# error: 24 [arguments] "math.isclose has no argument 'b' here"
    ]
---
# functions of modules accept no ** arguments
import json

def t(xs: list, options: dict) -> str:
    """Call."""
    return json.dumps(xs, **options)  # error: 27 [arguments] "json.dumps takes no ** arguments"
---
# a constant of a module can't be called
import math

def t() -> float:
    """Call."""
    return math.pi()  # error: 12 [not-callable] "math.pi is a constant"
---
# defaultdict takes a type, or a lambda that makes a constant
import math
from collections import Counter, defaultdict, deque

def _empty() -> list:
    return []

def t(xs: list, n: int) -> dict:
    """Group."""
    a = defaultdict(list)
    b = defaultdict(lambda: 0)
    c = defaultdict()  # error: 9 [arguments] "defaultdict takes a type, or a lambda that makes a constant"
    d = defaultdict(int, {"a": 1})
    e = [defaultdict(lambda: [0, -1]), defaultdict(lambda: {"n": 0, "all": []}), defaultdict(lambda: [0] * 26), defaultdict(lambda: math.inf)]
    f = [defaultdict(lambda: defaultdict(int)), defaultdict(lambda: defaultdict(lambda: set())), defaultdict(Counter), defaultdict(lambda: deque())]
    g = defaultdict(lambda: n)  # error: 9 [arguments] "defaultdict takes a type, or a lambda that makes a constant"
    h = defaultdict(lambda: tools.current_time())  # error: 9 [arguments] "defaultdict takes a type, or a lambda that makes a constant"
    i = defaultdict(lambda x: 0)  # error: 9 [arguments] "defaultdict takes a type, or a lambda that makes a constant"
    j = defaultdict(lambda: [x for x in xs])  # error: 9 [arguments] "defaultdict takes a type, or a lambda that makes a constant"
    k = defaultdict(_empty)  # error: 9 [arguments] "defaultdict takes a type, or a lambda that makes a constant"
    l = defaultdict(lambda: f"{n}")  # error: 9 [arguments] "defaultdict takes a type, or a lambda that makes a constant"
    for x in xs:
        a[str(x)].append(x)
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g, "h": h, "i": i, "j": j, "k": k, "l": l}
---
# the result of print is None
def t() -> None:
    """Say."""
    return print("a")
---
# unpacking a dict into a helper and a method
def _f(a: int = 1, **b) -> int:  # error: 22 [no-star-parameter] "`**b` parameters are not in the language"
    return a

def t() -> int:
    """Give."""
    return _f(a=1)
---
# the tool of a batch is a text that names a tool
def t(paths: list[str], name: str) -> list:
    """Count the words of many files."""
    items = [{"path": path} for path in paths]
    a = tools.start_batch(tool="count_words", items=items)
    b = tools.start_batch(tool=name, items=items)  # error: 32 [batch-tool] "the tool of a batch must be written as a text, so that a review shows it"
    c = tools.start_batch("count_word", items)  # error: 27 [unknown-tool] "no tool named 'count_word'; did you mean 'count_words'?"
    return [a, b, c]
---
# a batch of the tool itself, and of a tool of the agent
def t(paths: list[str]) -> list:
    """Count the words of many files."""
    items = [{"paths": [path]} for path in paths]
    a = tools.start_batch(tool="t", items=items)  # error: 32 [self-call] "the tool 't' makes a batch of itself"
    b = tools.start_batch(tool="run_tool", items=items)  # error: 32 [meta-tool] "'run_tool' is for the agent; a program can't call it"
    return [a, b]
