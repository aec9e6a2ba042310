# every form of annotation
class Row(TypedDict):
    name: str
    tags: list[str]
    note: NotRequired[str | None]

class Options(TypedDict, total=False):
    """What can be set."""
    depth: Required[int]
    row: Row

def t(
    a: str, b: int, c: float, d: bool, e: None, f: list, g: dict, h: tuple, i: Any,
    j: list[str], k: dict[str, int], l: tuple[int, str], m: tuple[int, ...], n: Literal["a", 1, -1, True, None],
    o: Optional[str], p: str | None, q: list[dict[str, list[int]]], r: Row, s: Options | None = None, *, u: list[Row] = None,
) -> dict[str, Any]:
    """Take everything."""
    x: list[str] = []
    y: set[int] = {1}
    z: Row = {"name": "a", "tags": x}
    return {"y": sorted(y), "z": z}
---
# a parameter without an annotation
def t(path, limit: int = 1) -> str:  # error: 7 [no-annotation] "the parameter 'path' has no annotation"
    """Read."""
    return path
---
# a helper's parameters need no annotations
def _f(a, b=1):
    return a + b

def t(path: str):
    """Read."""
    return _f(path, "x")
---
# types that don't exist
def t(a: string, b: integer, c: Path, d: object) -> boolean:
# error: 10 [annotation] "'string' is not a type here; did you mean 'str'?"
# error: 21 [annotation] "'integer' is not a type here; did you mean 'int'?"
# error: 33 [annotation] "'Path' is not a type here; did you mean 'str'?"
# error: 42 [annotation] "'object' is not a type here; did you mean 'Any'?"
# error: 53 [annotation] "'boolean' is not a type here; did you mean 'bool'?"
    """Read."""
    return a
---
# generic types of typing
def t(a: List, b: Dict, c: Union[str, int], d: Callable, e: Iterable[str]) -> None:
# error: 10 [annotation] "'List' is not a type here; did you mean 'list'?"
# error: 19 [annotation] "'Dict' is not a type here; did you mean 'dict'?"
# error: 48 [annotation] "'Callable' is not a type here"
# error: 61 [annotation] "'Iterable' takes no types in brackets; did you mean 'list'?"
    """Read."""
    return None
---
# a type in quotes
def t(a: "str", b: list["int"]) -> "dict":
# error: 10 [annotation] "an annotation must not be in quotes"
# error: 25 [annotation] "an annotation must not be in quotes"
# error: 36 [annotation] "an annotation must not be in quotes"
    """Read."""
    return {}
---
# a generic type with the wrong number of arguments
def t(a: list[int, str], b: dict[str], c: Optional[int, str], d: str[int]) -> None:
# error: 10 [annotation] "list takes one type"
# error: 29 [annotation] "dict takes a key type and a value type"
# error: 43 [annotation] "Optional takes one type"
# error: 66 [annotation] "'str' takes no types in brackets"
    """Read."""
    return None
---
# the keys of a dict can be anything that Python can hash
def t(a: dict[str, int], b: dict[list, int]) -> None:  # error: 34 [annotation] "list can't be a key"
    """Read."""
    return None
---
# helpers may have dicts with other keys than text
from datetime import date


def _rows(near: dict[tuple[int, int], float], at: dict[float | None, date]) -> dict[date, bytes]:
    return {day: str(near).encode() for day in at.values()}


def t(a: str) -> list[str]:
    """Read."""
    return sorted(str(day) for day in _rows({(0, 1): 1.5}, {0.5: date(2024, 1, 2), None: date(2024, 1, 3)}))
---
# Literal accepts constants only
def t(a: Literal[str], b: Literal[1 + 1]) -> None:
# error: 18 [annotation] "Literal takes constants"
# error: 35 [annotation] "Literal takes constants"
    """Read."""
    return None
---
# expressions as annotations
def t(a: 1, b: [str], c: {"a": int}, d: str or None, e: json.Row) -> None:
# error: 10 [annotation] "this is not a type"
# error: 16 [annotation] "this is not a type"
# error: 26 [annotation] "this is not a type"
# error: 41 [annotation] "this is not a type"
# error: 57 [annotation] "this is not a type"
    """Read."""
    return None
---
# aliases of types, and the classes of modules in helpers
import datetime
import io
import re
from collections import Counter
from fractions import Fraction
from typing import TypeAlias

class Row(TypedDict):
    parts: Parts

Json = dict[str, Any]
Rows: TypeAlias = list[Row]
Parts = Optional[Rows] | Json
Text = str
When = datetime.date | None

def _f(a: Fraction, b: datetime.datetime, c: re.Match[str], d: re.Pattern, e: io.StringIO, f: Counter[str]) -> When:
    g: Json = {}
    return None

def t(a: Json, b: list[Parts], c: Text) -> Rows:
    """Take everything."""
    return []
---
# an alias is not a value, and its parts are types
from decimal import Decimal
Json = dict[str, Any]
Rows = list[Row]  # error: 13 [annotation] "'Row' is defined further down"
Deep = list[Deeper]  # error: 13 [unassigned] "the constant 'Deeper' is set further down"
Deeper = list[strng]  # error: 15 [annotation] "'strng' is not a type here; did you mean 'str'?"
Self = list[Self]  # error: 13 [unassigned] "the constant 'Self' is set further down"
Pair = tuple[int, 3]  # error: 19 [annotation] "this is not a type"
Money = list[Decimal]
Json = list  # error: 1 [rebound-name] "the constant 'Json' is set twice"
# error: 8 [function-value] "the type 'list' can't be used as a value"

class Row(TypedDict):
    money: Money

def t(row: Row, money: dict[str, Money]) -> Decimal:
# error: 12 [annotation] "decimal.Decimal can't be a tool's parameter or result"
# error: 34 [annotation] "decimal.Decimal can't be a tool's parameter or result"
# error: 45 [annotation] "decimal.Decimal can't be a tool's parameter or result"
    """Take."""
    Json(a=1)  # error: 5 [outside-name] "'Json' is allowed only in annotations"
    return isinstance(row, Json)  # error: 28 [outside-name] "'Json' is allowed only in annotations"
---
# aliases that are nested too deep
A = list[list[list[list[list[list[list[list[int]]]]]]]]
B = list[list[list[list[list[list[list[list[A]]]]]]]]  # error: 5 [annotation] "this type is nested more than 15 deep"

def t(a: B) -> int:
    """Take."""
    return 1
---
# a tool's parameters and result can't be sets or bytes
def t(a: set[str], b: bytes) -> frozenset:
# error: 10 [annotation] "set can't be a tool's parameter or result"
# error: 23 [annotation] "bytes can't be a tool's parameter or result"
# error: 33 [annotation] "frozenset can't be a tool's parameter or result"
    """Read."""
    return a
---
# a helper's parameters and result can be sets and bytes
def _f(a: set[str], b: bytes) -> frozenset:
    return frozenset(a)

def t(a: list[str]) -> list:
    """Read."""
    return sorted(_f(set(a), b""))
---
# a TypedDict with methods, defaults and other things
class Row(TypedDict):
    name: str = "a"  # error: 5 [no-class] "a TypedDict has annotated fields only"
    size = 1  # error: 5 [no-class] "a TypedDict has annotated fields only"
    def area(self):  # error: 5 [no-class] "a TypedDict has annotated fields only"
        return 1
    pass

def t() -> int:
    """Read."""
    return 1
---
# a TypedDict with a base, a decorator, a keyword
class Row(TypedDict, metaclass=str):  # error: 22 [no-class] "a TypedDict takes only total=False"
    name: str

@tool  # error: 2 [decorator] "a TypedDict takes no decorator"
class Other(TypedDict):
    name: str

def t() -> int:
    """Read."""
    return 1
---
# a class that inherits from another TypedDict
class Row(TypedDict):
    name: str

class Big(Row):  # error: 7 [no-class] "TypedDict is the only class in the language"
    size: int

def t() -> int:
    """Read."""
    return 1
---
# an exception class
class Missing(Exception):  # error: 7 [no-class] "TypedDict is the only class in the language"
    pass

def t() -> int:
    """Read."""
    raise Missing("x")
---
# a TypedDict is created by a call
class Row(TypedDict):
    name: str

def t() -> Row:
    """Make."""
    row: Row = {"name": "a"}
    row["name"] = "b"
    return Row(name=row["name"])
---
# a recursive TypedDict
class Node(TypedDict):
    name: str
    children: list[Node]

def t(node: Node) -> int:
    """Count."""
    return len(node["children"])
