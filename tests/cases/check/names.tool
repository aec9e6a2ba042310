# an unknown name gets the nearest one
def t(path: str) -> str:
    """Read."""
    return pth  # error: 12 [unknown-name] "nothing is named 'pth'; did you mean 'path'?"
---
# an unknown name without a similar name
def t(path: str) -> str:
    """Read."""
    return zzzzz  # error: 12 [unknown-name] "nothing is named 'zzzzz'"
---
# the constants of JSON and of other languages
def t(path: str) -> list:
    """List."""
    return [true, false, null]
# error: 13 [unknown-name] "nothing is named 'true'; did you mean 'True'?"
# error: 19 [unknown-name] "nothing is named 'false'; did you mean 'False'?"
# error: 26 [unknown-name] "nothing is named 'null'; did you mean 'None'?"
---
# open is replaced by tools
def t(path: str) -> str:
    """Read."""
    return open(path).read()  # error: 12 [outside-name] "'open' is not in the language"
---
# eval, exec, getattr, type and input
def t(path: str) -> list:
    """List."""
    a = eval(path)  # error: 9 [outside-name] "'eval' is not in the language"
    b = getattr(path, "upper")  # error: 9 [outside-name] "'getattr' is not in the language"
    c = type(path)  # error: 9 [outside-name] "'type' is not in the language"
    d = input("?")  # error: 9 [outside-name] "'input' is not in the language"
    return [a, b, c, d, id(path), hash(path)]
# error: 25 [outside-name] "'id' is not in the language"
# error: 35 [outside-name] "'hash' is not in the language"
---
# globals, vars, dir, object, super, __import__
def t(path: str) -> list:
    """List."""
    return [globals(), vars(), dir(path), object(), super(), __import__("os")]
# error: 13 [outside-name] "'globals' is not in the language"
# error: 24 [outside-name] "'vars' is not in the language"
# error: 32 [outside-name] "'dir' is not in the language"
# error: 43 [outside-name] "'object' is not in the language"
# error: 53 [outside-name] "'super' is not in the language"
# error: 62 [outside-name] "'__import__' is not in the language"
---
# names with two underscores on both sides
def t() -> list:
    """List."""
    return [__name__, __builtins__, __file__]
# error: 13 [private-name] "the name '__name__' begins with two underscores"
# error: 23 [private-name] "the name '__builtins__' begins with two underscores"
# error: 37 [private-name] "the name '__file__' begins with two underscores"
---
# a module that is used without an import
def t(x: dict) -> str:
    """Dump."""
    return json.dumps(x)  # error: 12 [unknown-name] "the module 'json' is used but not imported"
---
# the fix puts a missing import above constants and decorators
LIMIT = 3

@tool(timeout=5)
def t(x: dict) -> str:
    """Dump."""
    return re.escape(str(LIMIT))  # error: 12 [unknown-name] "the module 're' is used but not imported"
---
# urllib is imported as urllib.parse
def t(x: str) -> str:
    """Quote."""
    return urllib.parse.quote(x)  # error: 12 [unknown-name] "the module 'urllib.parse' is used but not imported"
---
# a tool is called with the prefix tools
def t(path: str) -> str:
    """Read."""
    return read_file(path=path)  # error: 12 [unknown-name] "the tool 'read_file' is called as tools.read_file(…)"
---
# a parameter may not be called tools
def t(tools: dict) -> str:  # error: 7 [rebound-name] "the parameter 'tools' redefines a name that is part of the language"
    """Read."""
    return tools.read_file(path="a")
---
# built-ins that are not in the language may be used as names
def t(id: str, type: str, input: dict, hash: str, file: str, filter_: str) -> str:
    """Join."""
    object = id + type + hash + file + filter_
    dir = input.get("dir", object)
    return dir
---
# a constant is assigned once
LIMIT = 1
LIMIT = 2  # error: 1 [rebound-name] "the constant 'LIMIT' is set twice"

def t() -> int:
    """Give."""
    return LIMIT
---
# a local variable may have a constant's name
LIMIT = 1

def t() -> int:
    """Give."""
    LIMIT = 2
    return LIMIT
---
# names with two underscores
def t(x: int) -> int:
    """Give."""
    __y = x  # error: 5 [private-name] "the name '__y' begins with two underscores"
    return __y
---
# one underscore is fine, and _ is a name
def t(xs: list) -> int:
    """Give."""
    n = 0
    for _ in xs:
        n += 1
    _x, _ = n, n
    return _x
---
# comprehension variables stay inside
def t(xs: list) -> int:
    """Give."""
    ys = [x for x in xs]
    return len(x) + len(ys)  # error: 16 [unknown-name] "nothing is named 'x'; did you mean 'xs'?"
---
# a lambda's parameter stays inside
def t(xs: list) -> list:
    """Give."""
    ys = sorted(xs, key=lambda row: row[0])
    return [ys, row]  # error: 17 [unknown-name] "nothing is named 'row'"
---
# a local of another function is not in scope
def _a() -> int:
    total = 1
    return total

def t() -> int:
    """Give."""
    return _a() + total  # error: 19 [unknown-name] "nothing is named 'total'"
---
# a constant uses constants above it, and pure calls
import re

WORD = re.compile(r"\w+")
NAMES = ["a", "b"]
INDEX = {n: i for i, n in enumerate(NAMES)}
BOTH: dict[str, int] = {**INDEX, "c": len(NAMES)}

def t(text: str) -> list:
    """Find."""
    return [BOTH, WORD.findall(text)]
---
# a constant below its use in another constant
A = B + 1  # error: 5 [unassigned] "the constant 'B' is set further down"
B = 1

def t() -> int:
    """Give."""
    return A
---
# a handler for OSError around a tool call should handle ToolError
def t(path: str) -> str:
    """Read."""
    try:
        return tools.read_file(path=path)
    except OSError:  # error: 12 [outside-name] "'OSError' is not in the language"
        return ""
---
# FileNotFoundError is a ToolError with a code
def t(path: str) -> str:
    """Read."""
    try:
        return tools.read_file(path=path)
    except FileNotFoundError as e:  # error: 12 [outside-name] "'FileNotFoundError' is not in the language"
        return str(e)
---
# two exceptions of the operating system in a tuple
def t(path: str) -> str:
    """Read."""
    try:
        return tools.read_file(path=path)
    except (OSError, ValueError):  # error: 13 [outside-name] "'OSError' is not in the language"
        return ""
---
# BaseException and KeyboardInterrupt
def t(path: str) -> str:
    """Read."""
    try:
        return tools.read_file(path=path)
    except BaseException:  # error: 12 [outside-name] "'BaseException' is not in the language"
        return ""
---
# MemoryError and RecursionError can't be caught
def t(path: str) -> str:
    """Read."""
    try:
        return tools.read_file(path=path)
    except MemoryError:  # error: 12 [outside-name] "'MemoryError' is not in the language"
        return ""
    except RecursionError:  # error: 12 [outside-name] "'RecursionError' is not in the language"
        return "r"
---
# names of typing are not values
def t(x: Any) -> Any:
    """Give."""
    return [Any, x]  # error: 13 [outside-name] "'Any' is allowed only in annotations"
---
# self is not in the language
def t(x: int) -> int:
    """Give."""
    return self.x + x  # error: 12 [outside-name] "'self' is not in the language"
