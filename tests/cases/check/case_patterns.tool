# every form of pattern
import math

def t(x: Any) -> Any:
    """Match."""
    match x:
        case None | True | False:
            return 1
        case 1 | -2 | 3.5 | "a" "b" | b"c":
            return 2
        case str() | bytes():
            return 3
        case bool() as flag if flag:
            return flag
        case math.pi:
            return 4
        case [] | ():
            return 5
        case [1, y] | (y, 1, 2):
            return y
        case [int() as a, *rest, {"k": [b, _]}]:
            return [a, rest, b]
        case {"type": "file", "size": int() as size, **others}:
            return [size, others]
        case {"a": {"b": c}} if c:
            return c
        case (1 | 2) as d, *_:
            return d
        case {}:
            return 6
        case other:
            return other
---
# several subjects
def t(x: Any, y: Any) -> Any:
    """Match."""
    match x, y:
        case 0, _:
            return 1
        case _, 0:
            return 2
        case _:
            return 3
---
# a class pattern of something that isn't a built-in type
from datetime import date

def t(x: Any) -> Any:
    """Match."""
    match x:
        case date():  # error: 14 [pattern] "a class pattern must name a built-in type"
            return 1
        case Point():  # error: 14 [pattern] "a class pattern must name a built-in type"
            return 2
        case ToolError():  # error: 14 [pattern] "a class pattern must name a built-in type"
            return 3
---
# a name is a capture, not a comparison
LIMIT = 3

def t(x: Any) -> Any:
    """Match."""
    match x:
        case LIMIT:  # error: 14 [pattern] "'LIMIT' is captured here, not compared with the constant"
            return 1
        case _:
            return 2
---
# a dotted name that is not a constant
import math

def t(x: Any) -> Any:
    """Match."""
    match x:
        case math.sqrt:  # error: 14 [pattern] "a dotted name in a pattern must be a constant of a module"
            return 1
        case x.y:  # error: 14 [pattern] "a dotted name in a pattern must be a constant of a module"
            return 2
---
# alternatives bind the same names
def t(x: Any) -> Any:
    """Match."""
    match x:
        case [a] | [a, b]:  # error: 14 [pattern] "the alternatives of a pattern bind different names"
            return 1
---
# a name bound twice
def t(x: Any) -> Any:
    """Match."""
    match x:
        case [a, a]:  # error: 14 [pattern] "the pattern binds 'a' twice"
            return a
        case {"k": b, **b}:  # error: 14 [pattern] "the pattern binds 'b' twice"
            return b
---
# an alternative that matches everything
def t(x: Any) -> Any:
    """Match."""
    match x:
        case _ | 1:  # error: 14 [pattern] "this alternative matches everything, so the ones after it never can"
            return 1
---
# a case that matches everything, before others
def t(x: Any) -> Any:
    """Match."""
    match x:
        case y:  # error: 14 [pattern] "this case matches everything, so the ones after it never can"
            return y
        case 1:
            return 1
---
# two stars in one pattern
def t(x: Any) -> Any:
    """Match."""
    match x:
        case [*a, 1, *b]:  # error: 22 [pattern] "two starred names in one pattern"
            return [a, b]
---
# an f-string as a pattern
def t(x: Any) -> Any:
    """Match."""
    match x:
        case f"{x}":  # error: 14 [syntax] "a pattern can't be an f-string"
            return 1
---
# a key after **rest
def t(x: Any) -> Any:
    """Match."""
    match x:
        case {**rest, "a": 1}:  # error: 23 [syntax] "nothing may follow **rest in a mapping pattern"
            return rest
---
# a comparison as a pattern
def t(x: int) -> Any:
    """Match."""
    match x:
        case > 3:  # error: 14 [syntax] "'>' is not allowed here"
            return 1
---
# a comparison in a guard
def t(x: int) -> Any:
    """Match."""
    match x:
        case n if n > 3:
            return n
        case _ if x:
            return 2
    return 3
---
# an expression as a pattern
def t(x: int) -> Any:
    """Match."""
    match x:
        case 1 + 1:  # error: 18 [syntax] "imaginary number required in complex literal"
            return 1
