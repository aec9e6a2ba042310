# a helper bound to a name
def _f(x: int) -> int:
    return x

def t(xs: list) -> list:
    """Map."""
    g = _f  # error: 9 [function-value] "the function '_f' can't be used as a value"
    return [g]
---
# a built-in in a list, a dict, a tuple, a default and a return
def t(xs: list, f: Any = len) -> list:
# error: 26 [function-value] "the function 'len' can't be used as a value"
# error: 26 [mutable-default] "the default of 'f' must be a literal: a number, a string, True, False, None or a tuple of these"
    """Map."""
    a = [len, str]
# error: 10 [function-value] "the function 'len' can't be used as a value"
# error: 15 [function-value] "the type 'str' can't be used as a value"
    b = {"f": max}  # error: 15 [function-value] "the function 'max' can't be used as a value"
    return print, a, b  # error: 12 [function-value] "the function 'print' can't be used as a value"
---
# a helper as an argument of a helper
def _f(x: int) -> int:
    return x

def _apply(f: Any, x: int) -> int:
    return f(x)  # error: 12 [not-callable] "'f' is a value; only functions named in the source can be called"

def t(x: int) -> int:
    """Map."""
    return _apply(_f, x)  # error: 19 [function-value] "the function '_f' can't be used as a value"
---
# callbacks in every position that accepts one
import functools
import re

def _size(row: list) -> int:
    return len(row)

def _upper(m: Any) -> str:
    return m.group(0).upper()

def t(rows: list, text: str, counts: dict) -> list:
    """Use."""
    rows.sort(key=_size)
    return [
        sorted(rows, key=len),
        sorted(rows, key=_size, reverse=True),
        sorted(counts, key=counts.get),
        sorted(rows, key=str.lower),
        max(rows, key=lambda r: r[0]),
        min(rows, key=_size),
        list(map(str, rows)),
        list(map(str.strip, text.split(","))),
        list(map(lambda r, s: r + s, rows, rows)),
        list(map(_size, rows)),
        list(filter(None, rows)),
        list(filter(_size, rows)),
        list(filter(str.isdigit, text)),
        functools.reduce(lambda a, b: a + b, rows, []),
        re.sub(r"\w+", _upper, text),
        re.sub(r"\w+", lambda m: m[0].title(), text),
        re.compile("a").sub(lambda m: m.group(), text),
    ]
---
# a lambda as the argument of a helper
def _apply(f: Any) -> int:
    return 1

def t(x: int) -> int:
    """Apply."""
    return _apply(lambda: x)  # error: 19 [lambda-value] "a lambda is allowed only as a callback: key=…, map(…), filter(…), reduce(…), re.sub(pattern, …)"
---
# a mutating method as a callback
def t(xs: list) -> list:
    """Collect."""
    out = []
    a = list(map(out.append, xs))  # error: 22 [function-value] "the method 'append' changes its value; it can't be a callback"
    return [out, a]
---
# print as a callback
def t(xs: list) -> list:
    """Print."""
    return list(map(print, xs))  # error: 21 [function-value] "the function 'print' can't be used as a value"
---
# a helper that calls a tool may be a callback
def _read(path: str) -> str:
    return tools.read_file(path=path)

def t(paths: list[str]) -> list:
    """Read."""
    return list(map(_read, paths))
---
# isinstance against types and tuples of types
def t(x: Any) -> list:
    """Ask."""
    return [isinstance(x, str), isinstance(x, (int, float)), isinstance(x, str | int), isinstance(x, (list, (dict, set)))]
---
# isinstance against exceptions, None and other things
import re

def t(x: Any) -> list:
    """Ask."""
    return [
        isinstance(x, ToolError),
        isinstance(x, (KeyError, re.error)),
        isinstance(x, len),  # error: 23 [function-value] "the function 'len' can't be used as a value"
        isinstance(x, tools),  # error: 23 [tools-value] "'tools' is used without a call"
        isinstance(x, re.Pattern),  # error: 26 [unknown-attribute] "re has no 'Pattern' here"
    ]
---
# comparing types
def t(x: Any) -> bool:
    """Ask."""
    return x is int or x == str
# error: 17 [function-value] "the type 'int' can't be used as a value"
# error: 29 [function-value] "the type 'str' can't be used as a value"
---
# exceptions are used in raise, except and isinstance
def t(x: Any) -> Any:
    """Ask."""
    errors = [ValueError, KeyError]
# error: 15 [function-value] "the exception 'ValueError' is allowed only in raise, except and isinstance"
# error: 27 [function-value] "the exception 'KeyError' is allowed only in raise, except and isinstance"
    e = ValueError("x")
    return [errors, e]
---
# raise of a class, of an instance, and from
def t(x: Any) -> Any:
    """Ask."""
    try:
        if x == 1:
            raise ValueError
        raise KeyError("x")
    except (KeyError, ValueError) as e:
        raise ToolError("bad") from e
---
# a tuple of exceptions as a constant
ERRORS = (KeyError, ValueError)
# error: 11 [function-value] "the exception 'KeyError' is allowed only in raise, except and isinstance"
# error: 21 [function-value] "the exception 'ValueError' is allowed only in raise, except and isinstance"

def t(x: dict) -> Any:
    """Ask."""
    try:
        return x["a"]
    except ERRORS:  # error: 12 [except] "only exceptions of the language can be caught"
        return None
---
# modules are not values
import json
import math

def t(x: Any) -> Any:
    """Ask."""
    m = json  # error: 9 [function-value] "the module 'json' can't be used as a value"
    return [m, math]  # error: 16 [function-value] "the module 'math' can't be used as a value"
---
# a module that is called
import json

def t(x: Any) -> Any:
    """Ask."""
    return json(x)  # error: 12 [function-value] "the module 'json' can't be used as a value"
---
# functions and classes of modules are not values
import json
from datetime import date
from math import sqrt

def t(x: Any) -> Any:
    """Ask."""
    f = json.dumps  # error: 9 [function-value] "the function 'dumps' can't be used as a value"
    return [f, sqrt, date]
# error: 16 [function-value] "the function 'sqrt' can't be used as a value"
# error: 22 [function-value] "the function 'date' can't be used as a value"
---
# functions of modules as callbacks
import json
import math
from datetime import date
from posixpath import basename

def t(xs: list) -> Any:
    """Ask."""
    return [list(map(json.dumps, xs)), sorted(xs, key=math.sqrt), list(map(date.fromisoformat, xs)), list(map(basename, xs))]
---
# a TypedDict is not a value
class Row(TypedDict):
    name: str

def t(xs: list) -> Any:
    """Ask."""
    return [Row, list(map(Row, xs))]
# error: 13 [function-value] "the TypedDict 'Row' can't be used as a value"
# error: 27 [function-value] "the TypedDict 'Row' can't be used as a value"
---
# a bound method is not a value
def t(text: str) -> Any:
    """Ask."""
    f = text.upper  # error: 14 [method-value] "the method 'upper' is not called"
    return f
---
# a class method of a type
def t(xs: list) -> Any:
    """Make."""
    return [dict.fromkeys(xs, 0), str.maketrans("a", "b"), bytes.fromhex("ff").hex(), int.from_bytes(b"a", "big")]
---
# a method called on a type
def t(xs: list) -> Any:
    """Make."""
    return [str.upper("a"), list.append(xs, 1)]
# error: 34 [unknown-attribute] "'list.append' can't be used here"
---
# an instance method of a type as a value
def t(xs: list) -> Any:
    """Make."""
    f = str.upper  # error: 13 [unknown-attribute] "'str.upper' can't be used here"
    return f
---
# functions in f-strings and conditions
def t(xs: list) -> Any:
    """Show."""
    if len:  # error: 8 [function-value] "the function 'len' can't be used as a value"
        return f"{print}"  # error: 19 [function-value] "the function 'print' can't be used as a value"
    return not sorted  # error: 16 [function-value] "the function 'sorted' can't be used as a value"
---
# json.dumps takes default=str only
import json

def _text(x: Any) -> str:
    return str(x)

def t(x: Any) -> Any:
    """Show."""
    return [json.dumps(x, default=str), json.dumps(x, default=_text)]  # error: 63 [function-value] "the function '_text' can't be used as a value"
---
# a callback in the wrong argument
def _size(x: list) -> int:
    return len(x)

def t(xs: list) -> Any:
    """Show."""
    return [sorted(xs, reverse=_size), sum(xs, _size), list(map(xs, _size))]
# error: 32 [function-value] "the function '_size' can't be used as a value"
# error: 48 [function-value] "the function '_size' can't be used as a value"
# error: 69 [function-value] "the function '_size' can't be used as a value"
---
# key= of a function that does not sort
def _size(x: list) -> int:
    return len(x)

def t(d: dict) -> Any:
    """Show."""
    d.update(key=_size)  # error: 18 [function-value] "the function '_size' can't be used as a value"
    return d
---
# attributes of a helper
def _size(x: list) -> int:
    return len(x)

def t(d: dict) -> Any:
    """Show."""
    return [_size.__name__, len.__doc__, t.args]
# error: 19 [private-attribute] "the attribute '__name__' is private"
# error: 33 [private-attribute] "the attribute '__doc__' is private"
# error: 42 [function-value] "the function 't' can't be used as a value"
---
# a mutating method of a module's class is no callback
import collections

def t(queues: list) -> Any:
    """Show."""
    return list(map(collections.deque.popleft, queues))
# error: 39 [function-value] "the method 'popleft' changes its value; it can't be a callback"
---
# itemgetter is only a callback, and operator has only pure functions
import operator
from operator import attrgetter, itemgetter, methodcaller
# error: 22 [unknown-import] "operator has no 'attrgetter' here"
# error: 46 [unknown-import] "operator has no 'methodcaller' here"

def _f(x: Any) -> Any:
    return x

def t(rows: list) -> Any:
    """Sort."""
    get = itemgetter(1)  # error: 11 [function-value] "itemgetter(…) is a function; it is allowed only as a callback: key=…, map(…), groupby(…), …"
    rows.append(operator.itemgetter(0)(rows))  # error: 17 [function-value] "itemgetter(…) is a function; it is allowed only as a callback: key=…, map(…), groupby(…), …"
# error: 17 [not-callable] "only names and methods can be called"
    _f(operator.itemgetter(0))  # error: 8 [function-value] "itemgetter(…) is a function; it is allowed only as a callback: key=…, map(…), groupby(…), …"
    a = operator.add  # error: 9 [function-value] "the function 'add' can't be used as a value"
    operator.setitem(rows, 0, 1)  # error: 14 [unknown-attribute] "operator has no 'setitem' here; did you mean 'getitem'?"
    operator.iadd(rows, [1])  # error: 14 [unknown-attribute] "operator has no 'iadd' here; did you mean 'add'?"
    operator.call(_f)  # error: 14 [unknown-attribute] "operator has no 'call' here"
# error: 19 [function-value] "the function '_f' can't be used as a value"
    return sorted(rows, key=itemgetter(0)), get, a
---
# a lambda that is not a callback
def t(xs: list) -> list:
    """Sort."""
    steps = [lambda x: x]  # error: 14 [lambda-value] "a lambda is allowed only as a callback: key=…, map(…), filter(…), reduce(…), re.sub(pattern, …)"
    return steps + xs
---
# classes of modules and types of values in isinstance
import datetime
from decimal import Decimal

def t(x: Any) -> Any:
    """Ask."""
    kinds = [isinstance(x, Decimal), isinstance(x, (int, Decimal)), isinstance(x, datetime.date), isinstance(x, type(kinds := 1)), isinstance(x, int | Decimal)]
    return [Decimal, kinds]  # error: 13 [function-value] "the function 'Decimal' can't be used as a value"
