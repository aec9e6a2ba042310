"""Whether an operation fails for all values of some classes. Python itself answers this.

Each class has a few samples. An operation is tried with all combinations of samples. If each attempt raises TypeError, the
operation fails for all values of these classes, because Python's built-in operations choose by class before they look at the
value. An operation that raises something else, or that works for one sample, is not certain to fail.
"""

from __future__ import annotations

import builtins
import html
import itertools
import json
import math
import operator
import posixpath
import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from albert_tools.engine.check.types.value_types import Type, plain
from albert_tools.engine.model import vocabulary

#: New samples of each class: an operation may change them. The empty and the usual values are both there.
SAMPLES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "None": lambda: (None,),
    "bool": lambda: (False, True),
    "int": lambda: (0, 1, 65),
    "float": lambda: (0.0, 1.5),
    "str": lambda: ("", "a", "1", "utf-8"),
    "bytes": lambda: (b"", b"a"),
    "list": lambda: ([], ["a"], [1], [("a", 1)]),
    "tuple": lambda: ((), ("a",), (1, 2)),
    "dict": lambda: ({}, {"a": "a"}, {1: 1}),
    "set": lambda: (set(), {"a"}),
    "frozenset": lambda: (frozenset(), frozenset("a")),
    "range": lambda: (range(0), range(3)),
    "lazy": lambda: (iter(()), map(str, (1,)), enumerate("a"), zip("a")),
    "view": lambda: ({}.keys(), {"a": 1}.values(), {"a": 1}.items()),
    "slice": lambda: (slice(None), slice(0, 1)),
    "re.Match": lambda: (re.match("a", "a"), re.match(b"a", b"a")),
    "re.Pattern": lambda: (re.compile("a"), re.compile(b"a")),
}

#: Methods that can load a module, which the judging process can't do.
_LOADING = ("encode", "decode")
#: The most arguments of a call that is tried.
_MAX_ARGUMENTS = 3

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "|": operator.or_,
    "&": operator.and_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    **BINARY,
    "+": operator.iadd,
    "*": operator.imul,
    "|": operator.ior,
    "&": operator.iand,
    "-": operator.isub,
    "^": operator.ixor,
}
#: The operators that never fail, and whose result is a bool.
EQUALITY = frozenset({"==", "!=", "is", "is not"})

UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}

#: Built-ins whose calls can be tried. `print`, `isinstance` and those with callbacks are not here.
_BUILTINS: dict[str, Callable[..., Any]] = {
    name: getattr(builtins, name)
    for name in """abs all any bin bool chr dict divmod enumerate float format frozenset hex int iter len list max min next oct ord
    pow range reversed round set sorted sum tuple zip""".split()
}
#: Functions of modules whose calls can be tried.
_CALLED = _BUILTINS | {
    f"{module.__name__}.{name}": getattr(module, name)
    for module, names in (
        (json, "dumps loads"),
        (math, "ceil exp fabs floor isfinite isinf isnan log log10 log2 pow sqrt trunc"),
        (re, "compile escape findall fullmatch match search split"),
        (posixpath, "basename dirname isabs join normpath split splitext"),
        (html, "escape unescape"),
    )
    for name in names.split()
}


def can_try(name: str) -> bool:
    """Whether calls of a built-in or of a function of a module can be tried."""
    return name in _CALLED


def binary(op: str, left: str, right: str) -> bool:
    """Whether a binary operator fails for all values of two classes."""
    # The text before `%` says how many values are formatted.
    return not (op == "%" and left in ("str", "bytes")) and _fails(BINARY[op], left, right)


def augmented(op: str, left: str, right: str) -> bool:
    """Whether ``name op= value`` fails for all values of two classes. A list takes any items by ``+=``."""
    return not (op == "%" and left in ("str", "bytes")) and _fails(_IN_PLACE[op], left, right)


def unary(op: str, operand: str) -> bool:
    """Whether a unary operator fails for all values of a class."""
    return op in UNARY and _fails(UNARY[op], operand)


def iterating(name: str) -> bool:
    """Whether a class has no values that can be iterated."""
    return _fails(iter, name)


def hashing(name: str) -> bool:
    """Whether no value of a class can be a key."""
    return name in ("list", "dict", "set")


def indexing(name: str, index: str) -> bool:
    """Whether ``value[index]`` fails for all values of two classes."""
    return index != "slice" and _fails(operator.getitem, name, index)


def storing(name: str, index: str) -> bool:
    """Whether ``value[index] = x`` fails for all values of two classes."""
    return index != "slice" and _fails(_store, name, index)


def deleting(name: str, index: str) -> bool:
    """Whether ``del value[index]`` fails for all values of two classes."""
    return index != "slice" and _fails(operator.delitem, name, index)


def calling(name: str, arguments: tuple[str, ...]) -> bool:
    """Whether a call of a function (`can_try`) fails for all values of these classes."""
    return len(arguments) <= _MAX_ARGUMENTS and _fails(_CALLED[name], *arguments)


def calling_method(name: str, method: str, arguments: tuple[str, ...]) -> bool:
    """Whether a method fails for all arguments of these classes."""
    return method not in _LOADING and len(arguments) < _MAX_ARGUMENTS and _fails(_method(method), name, *arguments)


def has_attribute(name: str, attribute: str) -> bool:
    """Whether values of a class have an attribute or a method."""
    return name not in SAMPLES or name in ("lazy", "view") or hasattr(SAMPLES[name]()[0], attribute)


def methods(name: str) -> set[str]:
    """The methods of a class that programs may call."""
    return {m for m in vocabulary.METHODS if callable(getattr(SAMPLES[name]()[0], m, None))}


@cache
def _fails(operation: Callable[..., Any], *names: str) -> bool:
    if not all(name in SAMPLES for name in names):
        return False
    counts = [range(len(SAMPLES[name]())) for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return all(
            _raises(operation, [SAMPLES[name]()[i] for name, i in zip(names, chosen, strict=True)])
            for chosen in itertools.product(*counts)
        )


def _raises(operation: Callable[..., Any], values: list[Any]) -> bool:
    """Whether an operation raises TypeError for these values."""
    try:
        operation(*values)
    except TypeError:
        return True
    except Exception:
        return False
    return False


def _store(container: Any, index: Any) -> None:
    container[index] = "a"


@cache
def _method(name: str) -> Callable[..., Any]:
    return lambda own, *arguments: getattr(own, name)(*arguments)


#: The classes of the results of operators. Other results can be anything.
_NUMBERS = ("bool", "int")


def result_of_binary(op: str, left: str, right: str) -> Type:
    """What an operator returns for values of two classes."""
    if op in EQUALITY or op in ("in", "not in"):
        return plain("bool")
    if op in ("<", "<=", ">", ">="):
        return plain("bool") if {left, right} <= {"bool", "int", "float", "str"} else None
    if left in _NUMBERS and right in _NUMBERS:
        if op in ("|", "&", "^") and left == right:
            return plain(left)
        return plain("float") if op == "/" else None if op == "**" else plain("int")
    if {left, right} <= {*_NUMBERS, "float"}:
        return None if op == "**" else plain("float")
    if left == "str" and (op == "%" or (op == "+" and right == "str") or (op == "*" and right in _NUMBERS)):
        return plain("str")
    if op == "+" and left == right and left in ("list", "tuple", "bytes"):
        return plain(left)
    if op == "*" and left in ("list", "tuple") and right in _NUMBERS:
        return plain(left)
    if op in ("|", "&", "-", "^") and left == right and left in ("set", "dict"):
        return plain(left)
    return None
