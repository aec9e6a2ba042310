# the result of a method is dropped
def t(text: str) -> str:
    """Strip."""
    text.strip()  # warning: 5 [unused-result] "the result of this is not used"
    text.replace("a", "b")  # warning: 5 [unused-result] "the result of this is not used"
    return text
---
# a comparison instead of an assignment
def t(x: int) -> int:
    """Compare."""
    x == 1  # warning: 5 [unused-result] "the result of this is not used"
    x + 1  # warning: 5 [unused-result] "the result of this is not used"
    x  # warning: 5 [unused-result] "the result of this is not used"
    "text"  # warning: 5 [unused-result] "the result of this is not used"
    [x]  # warning: 5 [unused-result] "the result of this is not used"
    return x
---
# sorted instead of sort
def t(xs: list) -> list:
    """Sort."""
    sorted(xs)  # warning: 5 [unused-result] "the result of this is not used"
    len(xs)  # warning: 5 [unused-result] "the result of this is not used"
    xs.sort()
    return xs
---
# a call with an effect may drop its result
def _f(xs: list) -> None:
    xs.append(1)

def t(xs: list, d: dict) -> list:
    """Do."""
    xs.append(1)
    xs.pop()
    d.update(a=1)
    d.setdefault("b", []).append(2)
    print(xs)
    tools.sleep(seconds=1)
    _f(xs)
    tools.list_directory()
    int(xs.pop())
    [_f(xs) for x in [1]]
    (y := 1)
    next(iter(xs), None)
    return [xs, y]
---
# a comprehension that is used for its effect
def t(xs: list) -> list:
    """Do."""
    out = []
    [out.append(x) for x in xs]
    return out
---
# a docstring, and a string as a later statement
def _f() -> int:
    """Give one."""
    return 1

def t() -> int:
    """Give."""
    """Once more."""  # warning: 5 [unused-result] "the result of this is not used"
    return _f()
---
# the result of a module's function is dropped
import json
import re

def t(text: str) -> str:
    """Do."""
    json.loads(text)
    re.sub("a", "b", text)
    return text
---
# a conversion in a try may drop its result
def t(text: str) -> bool:
    """Ask."""
    try:
        float(text)
        return True
    except ValueError:
        return False
