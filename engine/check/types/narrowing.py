"""What a test says about the type of a name: ``x is None``, ``isinstance(x, str)``, ``x == "a"``, ``x in ("a", "b")``, ``x``."""

from __future__ import annotations

from typing import Any

from albert_tools.engine.check.facts import called_name
from albert_tools.engine.check.types.value_types import Alternative, Type, plain
from albert_tools.grammar import tree

#: The classes that `isinstance` finds for values of a class.
_CLASSES = {name: {name} for name in "str bytes float int list tuple dict set frozenset range".split()}
_CLASSES |= {"bool": {"bool", "int"}, "None": set()}
#: The classes without subclasses in the language. An unknown value that is one of them has exactly this class.
_FINAL = frozenset({"str", "bytes", "float", "bool"})
_NUMBERS = frozenset({"bool", "int", "float"})


def truthy(type_: Type) -> Type:
    """The alternatives that can be true."""
    return type_ and tuple(a for a in type_ if a.name != "None" and (not a.constant or a.constant[0]))


def falsy(type_: Type) -> Type:
    """The alternatives that can be false."""
    always = ("re.Match", "re.Pattern", "lazy")
    return type_ and tuple(a for a in type_ if a.name not in always and not (a.constant and a.constant[0]))


def named(test: tree.Expr) -> str | None:
    """The name that a test is about."""
    match test:
        case tree.Name(id=name) | tree.NamedExpr(target=tree.Name(id=name)):
            return name
        case tree.Call(args=(tree.Name(id=name), _)) if called_name(test) == "isinstance":
            return name
        case tree.Compare(left=tree.Name(id=name) | tree.NamedExpr(target=tree.Name(id=name)), ops=(_,)):
            return name
    return None


def narrowed(test: tree.Expr, type_: Type, holds: bool) -> Type:
    """The type of the name that a test is about, if the test holds or does not hold."""
    match test:
        case tree.Name() | tree.NamedExpr():
            return truthy(type_) if holds else falsy(type_)
        case tree.Call(args=(_, classes)):
            return _instance(type_, classes, holds)
        case tree.Compare(ops=(op,), comparators=(other,)):
            return _compared(type_, op, other, holds)
    return type_


def _instance(type_: Type, classes: tree.Expr, holds: bool) -> Type:
    names = {
        c.id if isinstance(c, tree.Name) else ""
        for c in (classes.elts if isinstance(classes, tree.Tuple) else [classes])
    }
    if not names <= _CLASSES.keys():
        return type_
    if type_ is None:
        return plain(*sorted(names)) if holds and names <= _FINAL else None
    # A value of another class than the known ones can be an instance of anything.
    return tuple(a for a in type_ if a.name not in _CLASSES or (not _CLASSES[a.name].isdisjoint(names)) == holds)


def _compared(type_: Type, op: str, other: tree.Expr, holds: bool) -> Type:
    if type_ is None:
        return None
    if op in ("is not", "!=", "not in"):
        holds = not holds
    if op in ("in", "not in"):
        values = [_constant(e) for e in other.elts] if isinstance(other, tree.List | tree.Tuple | tree.Set) else [()]
    elif op in ("==", "!=") or (op in ("is", "is not") and _constant(other) == (None,)):
        values = [_constant(other)]
    else:
        return type_
    if not all(values):
        return type_
    if holds:
        return tuple(a for a in type_ if any(_can_equal(a, v[0]) for v in values))
    return tuple(a for a in type_ if not any(_equals(a, v[0]) for v in values))


def _constant(node: tree.Expr) -> tuple[Any, ...]:
    match node:
        case tree.Constant(value=value) if value is not ...:
            return (value,)
        case tree.Strings() if isinstance(node.constant, str):
            return (node.constant,)
    return ()


def _class(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _equals(alternative: Alternative, value: Any) -> bool:
    """Whether all values of an alternative equal a constant."""
    if value is None:
        return alternative.name == "None"
    return bool(alternative.constant) and bool(alternative.constant[0] == value)


def _can_equal(alternative: Alternative, value: Any) -> bool:
    """Whether a value of an alternative can equal a constant."""
    if alternative.constant:
        return bool(alternative.constant[0] == value)
    classes = {alternative.name, _class(value)}
    return len(classes) == 1 or classes <= _NUMBERS
