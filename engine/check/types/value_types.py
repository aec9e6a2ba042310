"""The type of an expression: what its value certainly is.

A type is a tuple of alternatives, or None if the value can be anything. An empty tuple means that no value is possible. A type is
never narrower than the values at run time, so what fails for each alternative fails each time.

A list, dict or set can change after its type was found. So an alternative for one of these carries its *site*: the expression that
made the value. If the source can change values of a site, nothing is known about their content (`sites`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

#: The most alternatives of a type, and the most parts of an alternative. What is larger can be anything.
MAX_ALTERNATIVES = 8
MAX_PARTS = 200
#: The deepest part of a schema that is read.
_MAX_DEPTH = 10
#: The most characters of a text that is a constant.
_MAX_CONSTANT = 100

#: A place where values are made, and the kind of these values: a display or a call, and ``list``, ``dict`` or ``set``.
Site: TypeAlias = tuple[int, str]


class Field(NamedTuple):
    """The value under a key of a dict, or at a position of a tuple. An optional key can be missing."""

    key: Any
    type: Type
    required: bool = True


class Alternative(Struct, frozen=True):
    """One kind of value.

    Attributes:
        name: The class: ``str``, ``None``, ``list``, ``re.Match``. ``lazy`` is any iterator, ``view`` the keys, values or
            items of a dict.
        constant: The value of a constant, in a tuple; otherwise the empty tuple.
        items: The items of a container, or the values of a dict.
        fields: All keys of a dict, or all positions of a tuple; None if they are not known.
        odd_keys: For a dict, ``some`` if it certainly has a key that is no text, ``all`` if each key that it may have is none.
        site: Where a list, dict or set is made; 0 if nothing is known about its content.
        parts: The number of alternatives in this one.
        sites: The sites of this one, and of all that it contains.
    """

    name: str
    constant: tuple[Any, ...] = ()
    items: Type = None
    fields: tuple[Field, ...] | None = None
    site: int = 0
    parts: int = 1
    sites: frozenset[Site] = frozenset()
    odd_keys: str = ""


Type: TypeAlias = tuple[Alternative, ...] | None

NEVER: Type = ()


def plain(*names: str) -> Type:
    """The type with these alternatives, without anything about their content."""
    return tuple(Alternative(name) for name in names)


def constant(value: Any) -> Type:
    """The type of one constant of a simple class."""
    if value is None:
        return plain("None")
    name = type(value).__name__
    if name not in ("bool", "int", "float", "str", "bytes"):
        return None
    if name in ("float", "bytes") or (name == "str" and len(value) > _MAX_CONSTANT):
        return plain(name)
    return (Alternative(name, (value,)),)


def container(
    name: str, site: int, items: Type = None, fields: tuple[Field, ...] | None = None, odd_keys: str = ""
) -> Type:
    """The type of a container with this content."""
    inside = [items, *(f.type for f in fields or ())]
    parts = 1 + sum(a.parts for each in inside for a in each or ())
    if parts > MAX_PARTS:
        return plain(name)
    sites = frozenset().union(*(a.sites for each in inside for a in each or ()))
    if name in ("list", "dict", "set"):
        sites |= {(site, name)}
    return (Alternative(name, (), items, fields, site, parts, sites, odd_keys),)


def widened(type_: Type) -> Type:
    """The type without its constants."""
    if type_ is None or not any(a.constant for a in type_):
        return type_
    return tuple(dict.fromkeys(Alternative(a.name) if a.constant else a for a in type_))


def join(types: Iterable[Type]) -> Type:
    """The type of a value that has one of the types."""
    alternatives: dict[Alternative, None] = {}
    for each in types:
        if each is None:
            return None
        alternatives |= dict.fromkeys(each)
    joined: Type = tuple(alternatives)
    if len(alternatives) > MAX_ALTERNATIVES:
        joined = widened(joined) or ()
        return joined if len(joined) <= MAX_ALTERNATIVES else None
    return joined


def sites_of(type_: Type) -> frozenset[Site]:
    """The sites in a type."""
    if not type_:
        return frozenset()
    return type_[0].sites if len(type_) == 1 else frozenset().union(*(a.sites for a in type_))


def spell(type_: Type) -> str:
    """A type in words: ``str | None``."""
    names = ["iterator" if a.name == "lazy" else a.name for a in type_ or ()]
    if {"int", "float"} <= set(names):
        names = [name for name in names if name != "float"]
        names[names.index("int")] = "number"
    return " | ".join(dict.fromkeys(names)) or "Any"


def from_schema(schema: dict[str, Any], site: int, changed: frozenset[Site] | None) -> Type:
    """The type of a JSON value that fits a schema. A JSON number without a fraction can be an int or a float.

    Nothing is known about the content of the `changed` sites. None means all.
    """
    return _Schema(schema, site, changed).type(schema, 0)


_NUMBER = ("int", "float")
_NAMES = {"string": ("str",), "boolean": ("bool",), "null": ("None",), "integer": _NUMBER, "number": _NUMBER}


class _Schema:
    """Reads one schema. Parts that are nested too deep, or too many, can be anything."""

    def __init__(self, schema: dict[str, Any], site: int, changed: frozenset[Site] | None) -> None:
        self.definitions = schema.get("$defs", {})
        self.site = site
        self.changed = changed
        self.left = MAX_PARTS

    def type(self, schema: Any, depth: int) -> Type:
        self.left -= 1
        if self.left < 0 or depth > _MAX_DEPTH or not isinstance(schema, dict):
            return None
        if "$ref" in schema:
            return self.type(self.definitions.get(str(schema["$ref"]).removeprefix("#/$defs/")), depth + 1)
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            # 1.0 fits the constant 1, so only texts and None are certain.
            return join(constant(v) for v in values) if all(isinstance(v, str | None) for v in values) else None
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return join([self.type(part, depth + 1) for part in schema[key]])
        kinds = schema.get("type", ())
        types = [self._kind(kind, schema, depth) for kind in (kinds if isinstance(kinds, list | tuple) else [kinds])]
        return join(types) if types else None

    def _kind(self, kind: str, schema: dict[str, Any], depth: int) -> Type:
        if kind == "array":
            if self.changed is None or (self.site, "list") in self.changed:
                return plain("list")
            items = None if "prefixItems" in schema else self.type(schema.get("items"), depth + 1)
            return container("list", self.site, items)
        if kind == "object":
            return self._object(schema, depth)
        return plain(*_NAMES[kind]) if kind in _NAMES else None

    def _object(self, schema: dict[str, Any], depth: int) -> Type:
        if self.changed is None or (self.site, "dict") in self.changed:
            return plain("dict")
        others = schema.get("additionalProperties")
        if others is not False:
            alike = "properties" not in schema and isinstance(others, dict)
            return container("dict", self.site, self.type(others, depth + 1) if alike else None)
        required = schema.get("required", ())
        fields = tuple(
            Field(name, self.type(part, depth + 1), name in required)
            for name, part in schema.get("properties", {}).items()
        )
        return container("dict", self.site, None, fields)
