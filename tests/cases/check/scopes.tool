# a parameter named like a built-in
def t(list: list[int], id: str, max: int = 3) -> str:
    """Read."""
    return f"{len(list)}{id}{max}"
---
# every form of binding may hide a built-in
def t(xs: list) -> list:
    """Bind."""
    str = 1
    for len in xs:
        pass
    a, *max = xs
    y = [sum for sum in xs]
    if (min := 3):
        pass
    try:
        pass
    except ValueError as print:
        pass
    match xs:
        case [set, *_]:
            pass
        case {"k": dict, **rest}:
            pass
    return sorted(xs, key=lambda zip: zip) + [str, max, sum(y), min]
---
# what hides a built-in is a value
def t(xs: list) -> list:
    """Count."""
    sum = 0
    for x in xs:
        sum += x
    return sum(xs)  # error: 12 [not-callable] "'sum' is a value; only functions named in the source can be called"
---
# a hidden built-in that is read before
def t(xs: list) -> int:
    """Count."""
    n = max(xs)
# error: 9 [unassigned] "'max' is assigned in this function, so here it is a local variable, not the built-in"
# error: 9 [not-callable] "'max' is a value; only functions named in the source can be called"
    max = n
    return max
---
# the variable of a comprehension hides nothing outside of it
def t(xs: list) -> list:
    """Convert."""
    return [[str for str in xs], str(xs), [list(int) for int in xs]]
---
# names of the prelude can't be hidden
def t(parallel: int) -> list:  # error: 7 [rebound-name] "the parameter 'parallel' redefines a name that is part of the language"
    """Bind."""
    tool = 1  # error: 5 [rebound-name] "the assignment 'tool' redefines a name that is part of the language"
    match 1:
        case str() as ToolError:  # error: 14 [rebound-name] "the capture 'ToolError' redefines a name that is part of the language"
            pass
    def example():  # error: 9 [rebound-name] "'example' redefines a name that is part of the language"
        return 1
    import json as tools  # error: 12 [rebound-name] "the import 'tools' redefines a name that is part of the language"
    return [tool]
---
# a local named like a helper, an import, the tool or a constant
import json
from math import sqrt

LIMIT = 3

def _rows(text: str) -> list:
    return text.splitlines()

def t(sqrt: float, t: str) -> list:
    """Dump."""
    json = "x"
    _rows = json + t
    LIMIT = sqrt
    return [_rows, LIMIT]
---
# a tool, a constant and an import named like built-ins
from operator import pow

max = 3

def sorted(xs: list, key: int = 1) -> list:
    """Sort."""
    return [pow(x, max) for x in xs] if key else sorted(xs, key=1)
---
# an annotation that names a hidden type
def t(list: list) -> int:
    """Count."""
    xs: list = [1]  # error: 9 [annotation] "'list' is another name here, which hides the type"
    ys: list[int] = xs  # error: 9 [annotation] "'list' is another name here, which hides the type"
    return len(xs) + len(list)
---
# an exception that a local hides
def t(x: str) -> int:
    """Convert."""
    ValueError = 1
    try:
        return int(x)
    except ValueError:  # error: 12 [except] "only exceptions of the language can be caught"
        return 0
---
# a nested function, called and as a callback
def t(xs: list[str]) -> list:
    """Sort."""
    def size(row):
        return len(row)
    return sorted(xs, key=size) + [size(x) for x in xs]
---
# nested functions are no values
def t(xs: list) -> list:
    """Give."""
    def size(row):
        return len(row)
    f = size  # error: 9 [function-value] "the function 'size' can't be used as a value"
    return [f]
---
# a nested function is not known outside of its function
def _f(x: int) -> int:
    def g():
        return x
    return g()

def t(x: int) -> int:
    """Call."""
    return _f(x) + g()  # error: 20 [unknown-name] "nothing is named 'g'"
---
# nested functions with the same name
def _f(x: int) -> int:
    def g(y):
        return x + y
    return g(1)

def t(x: int) -> int:
    """Call."""
    def g():
        return _f(x)
    return g(1)  # error: 14 [arguments] "g takes 0 positional arguments"
---
# a nested function that is called before it is defined
def t(x: int) -> int:
    """Call."""
    y = g()  # error: 9 [unassigned] "'g' has no value here"
    def g():
        return x
    return y
---
# a function's name has one meaning in its scope
def t(x: int) -> int:
    """Call."""
    if x:
        def g():
            return 1
    else:
        def g():  # error: 13 [rebound-name] "'g' is a function here already, and can't get another meaning"
            return 2
    import json
    json = 3  # error: 5 [rebound-name] "'json' is imported here already, and can't get another meaning"
    return g() + json
---
# nonlocal
def t(xs: list) -> int:
    """Add."""
    total = 0
    def add(x):
        nonlocal total
        total += x
    for x in xs:
        add(x)
    return total
---
# nonlocal without a variable around
def t(x: int) -> int:
    """Add."""
    def f():
        nonlocal y  # error: 9 [syntax] "Python refuses this: no binding for nonlocal 'y' found"
        return x
    return f()
---
# imports inside functions
def t(x: dict) -> str:
    """Import."""
    import json
    from math import floor as down
    import urllib.parse
    return json.dumps(x) + str(down(1.5)) + urllib.parse.quote("a b")
---
# an import is not known in other functions
def _f(x: dict) -> str:
    import json
    return json.dumps(x)

def t(x: dict) -> str:
    """Import."""
    return json.dumps(x) + _f(x)  # error: 12 [unknown-name] "the module 'json' is used but not imported"
---
# a tool that calls itself
def t(n: int) -> int:
    """Count."""
    return 0 if n == 0 else 1 + t(n - 1)
---
# a tool as a callback of its helper
def _all(xs: list) -> list:
    return list(map(t, xs))

def t(xs: Any) -> Any:
    """Flatten."""
    return _all(xs) if isinstance(xs, list) else xs
---
# a result of an inner call need not fit the annotation
def t(n: int, inner: bool = False) -> int:
    """Count."""
    if inner:
        return "n", n
    return t(n, True)[1]
---
# a body of parallel may not assign variables of other functions, or change what they hold
def t(paths: list[str]) -> list:
    """Read."""
    count = 0
    texts = []
    def read(path):
        nonlocal count  # error: 9 [parallel-change] "inside parallel a variable of another function can't be assigned"
        count += 1
        texts.append(path)  # error: 9 [parallel-change] "inside parallel only containers that the body created itself may be changed"
        return tools.read_file(path=path)
    return parallel(read(p) for p in paths)
---
# a lazy value that a nested function consumes
def t(xs: list) -> list:
    """Convert."""
    ys = map(str, xs)  # error: 10 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    def all_():
        return list(ys)
    return all_()
---
# a lazy value reads a variable that a nested function changes before it is consumed
def t(xs: list) -> list:
    """Add."""
    n = 1
    def more():
        nonlocal n
        n += 1
    ys = (x + n for x in xs)  # error: 10 [lazy-value] "a generator expression is lazy and must be consumed where it is made"
    more()
    return list(ys)
---
# a caught exception that a nested function raises
def t(x: str) -> int:
    """Convert."""
    last = ValueError("none")
    def fail():
        raise last
    try:
        return int(x)
    except ValueError as error:
        last = error
    fail()
    return 0
---
# a bare except
def t(path: str) -> Any:
    """Catch."""
    try:
        return tools.read_file(path=path)
    except:
        return None
---
# a bare except must be the last handler
def t(path: str) -> Any:
    """Catch."""
    try:
        return tools.read_file(path=path)
    except:  # error: 5 [syntax] "Python refuses this: default 'except:' must be last"
        return None
    except ToolError:
        return 1
---
# type outside of a comparison
def t(x: Any) -> Any:
    """Ask."""
    kind = type(x)  # error: 12 [outside-name] "'type' is not in the language"
    return kind == type(1) or type(1, 2) == "a"  # error: 31 [outside-name] "'type' is not in the language"
---
# a type that is compared with something else
def t(x: Any) -> Any:
    """Ask."""
    return x == int or [int] == type(x).mro()
# error: 17 [function-value] "the type 'int' can't be used as a value"
# error: 25 [function-value] "the type 'int' can't be used as a value"
# error: 33 [outside-name] "'type' is not in the language"
# error: 41 [unknown-attribute] "no method 'mro' in the language"
---
# a parameter named type
def t(type: str, id: int) -> str:
    """Show."""
    return f"{type}{id}"
---
# what sys doesn't have
import sys

def t(n: int) -> int:
    """Count."""
    sys.setrecursionlimit(10000)  # error: 9 [unknown-attribute] "sys has no 'setrecursionlimit' here"
    return n
---
# a dict of functions that is more than indexed and called
def t(name: str) -> Any:
    """Choose."""
    table = {"len": len}  # error: 21 [function-value] "the function 'len' can't be used as a value"
    other = table
    return other[name]("a")  # error: 12 [not-callable] "only names and methods can be called"
---
# a dict of functions that is changed
def t(name: str) -> Any:
    """Choose."""
    table = {"id": lambda x: x}  # error: 20 [lambda-value] "a lambda is allowed only as a callback: key=…, map(…), filter(…), reduce(…), re.sub(pattern, …)"
    table["other"] = 1
    return table[name]("a")  # error: 12 [not-callable] "only names and methods can be called"
---
# a dict with functions and values, and arguments by name
def t(name: str) -> Any:
    """Choose."""
    table = {"len": len, "no": 3}  # error: 32 [not-callable] "this dict is called, so it may hold functions only"
    return table[name](x=1)  # error: 12 [arguments] "a function of a dict takes its arguments by position"
---
# a dict of functions that reads itself
def t(name: str) -> Any:
    """Choose."""
    table = {"a": lambda x: table["b"](x), "b": abs}
# error: 19 [lambda-value] "a lambda is allowed only as a callback: key=…, map(…), filter(…), reduce(…), re.sub(pattern, …)"
# error: 29 [unassigned] "'table' has no value here"
# error: 29 [not-callable] "only names and methods can be called"
# error: 49 [function-value] "the function 'abs' can't be used as a value"
    return table[name](1)  # error: 12 [not-callable] "only names and methods can be called"
---
# a helper in a dict above its definition
TABLE = {"a": _size}  # error: 15 [module-level] "'_size' is defined further down"

def _size(x: str) -> int:
    return len(x)

def t(name: str) -> int:
    """Choose."""
    return TABLE[name]("a")
---
# a function chosen in parallel
TABLE = {"len": len, "str": str}

def t(names: list[str]) -> list:
    """Choose."""
    return parallel(TABLE[n]("a") for n in names)  # error: 21 [parallel] "inside parallel a function can't be chosen from a dict"
---
# a named lambda is no value, and has one meaning
def t(n: int) -> Any:
    """Add."""
    double = lambda x: 2 * x
    double = 3  # error: 5 [rebound-name] "'double' is a function here already, and can't get another meaning"
    once = lambda x: x
    return [once, once(1, 2)]
# error: 13 [function-value] "the function 'once' can't be used as a value"
# error: 27 [arguments] "once takes 1 positional argument"
---
# a function or a module gets no second meaning through nonlocal
from heapq import heappush as push

def t(command: str, xs: list) -> Any:
    """Run."""
    def echo(text):  # error: 9 [rebound-name] "'echo' is a function here already, and can't get another meaning"
        return text
    def change():
        nonlocal echo
        def deeper():
            nonlocal echo
            def echo(text):
                return tools.bash(command=text)
        deeper()
    change()
    one = lambda: 1  # error: 5 [rebound-name] "'one' is a function here already, and can't get another meaning"
    def again():
        nonlocal one
        one = lambda: 2
    again()
    return echo(command), one()
