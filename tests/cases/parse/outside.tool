# every construct outside is reported, not just the first
def t(n: int) -> int:
    """Many."""
    for n in [n]:
        with n:  # error: 9 [no-with] "`with` is not in the language: there are no files or locks to hold"
            n -= 1
    return n
---
# async def
async def t(path: str) -> str:  # error: 1 [no-async] "`async def` is not in the language"
    """Read."""
    return tools.read_file(path=path)
---
# await
def t(path: str) -> str:
    """Read."""
    return await tools.read_file(path=path)  # error: 12 [no-async] "`await` is not in the language"
---
# async for and async comprehensions
async def t(xs: list) -> list:  # error: 1 [no-async] "`async def` is not in the language"
    """Collect."""
    out = []
    async for x in xs:  # error: 5 [no-async] "`async for` is not in the language"
        out.append(x)
    return [x async for x in out]  # error: 25 [no-async] "`async for` is not in the language"
---
# async with
async def t(xs: list) -> list:  # error: 1 [no-async] "`async def` is not in the language"
    """Collect."""
    async with xs as y:  # error: 5 [no-async] "`async with` is not in the language"
        return y
---
# with open
def t(path: str) -> str:
    """Read."""
    with open(path) as f:  # error: 5 [no-with] "`with` is not in the language: there are no files or locks to hold"
        # error: 10 [outside-name] "'open' is not in the language"
        return f.read()
---
# yield
def t(n: int) -> list:
    """Count."""
    for i in range(n):
        yield i  # error: 9 [no-yield] "`yield` is not in the language: there are no generator functions"
---
# yield from
def t(n: int) -> list:
    """Count."""
    yield from range(n)  # error: 5 [no-yield] "`yield from` is not in the language: there are no generator functions"
---
# yield as an expression
def t(n: int) -> list:
    """Count."""
    x = yield n  # error: 9 [no-yield] "`yield` is not in the language: there are no generator functions"
    return x
---
# global
TOTAL = 0

def t(n: int) -> int:
    """Add."""
    global TOTAL  # error: 5 [no-global] "`global` is not in the language: module-level names are constants"
    TOTAL += n
    return TOTAL
---
# star parameters
def t(*paths) -> list:  # error: 8 [no-star-parameter] "`*paths` parameters are not in the language"
    """Read."""
    return paths
---
# double star parameters after named ones
def t(path: str, **options) -> dict:  # error: 20 [no-star-parameter] "`**options` parameters are not in the language"
    """Read."""
    return options
---
# positional-only parameters
def t(path: str, /) -> str:  # error: 7 [no-positional-only] "positional-only parameters are not in the language"
    """Read."""
    return path
---
# star import
from json import *  # error: 1 [no-star-import] "`from json import *` is not in the language"

def t() -> str:
    """Dump."""
    return dumps([])
---
# relative import
from . import helpers  # error: 1 [unknown-module] "relative imports are not in the language"

def t() -> str:
    """Help."""
    return helpers
---
# complex numbers
def t() -> str:
    """Rotate."""
    return 2j  # error: 12 [no-complex] "complex numbers are not in the language"
---
# an annotated attribute
def t(d: dict) -> dict:
    """Set."""
    d.x: int = 1  # error: 5 [no-annotated-target] "only plain names take an annotation"
    # error: 5 [attribute-assignment] "the attribute 'x' can't be assigned"
    return d
---
# an annotated item
def t(d: dict) -> dict:
    """Set."""
    d["x"]: int = 1  # error: 5 [no-annotated-target] "only plain names take an annotation"
    return d
---
# except star
def t(d: dict) -> dict:
    """Try."""
    try:
        return d
    except* ValueError:  # error: 5 [no-except-star] "`except*` is not in the language"
        return {}
---
# a class pattern with arguments
def t(d: dict) -> int:
    """Match."""
    match d:
        case dict(a=1):  # error: 14 [no-class-pattern] "a class pattern takes no arguments"
            return 1
        case str(x):  # error: 14 [no-class-pattern] "a class pattern takes no arguments"
            return 2
    return 3
---
# a lambda with star arguments
def t(xs: list) -> list:
    """Sort."""
    return sorted(xs, key=lambda *a: a)  # error: 27 [no-star-parameter] "a lambda takes plain parameters only"
---
# a class that is not a TypedDict
class Point:  # error: 7 [no-class] "TypedDict is the only class in the language"
    def __init__(self, x):
        self.x = x

def t() -> int:
    """Make."""
    return 1
---
# a print statement
def t() -> None:
    """Say."""
    print "hello"  # error: 5 [syntax] "Missing parentheses in call to 'print'. Did you mean print(...)?"
---
# the old operator <>
def t(a: int, b: int) -> bool:
    """Compare."""
    return a <> b  # error: 15 [syntax] "'>' is not allowed here"
