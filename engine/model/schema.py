"""JSON Schema (2020-12), the part that types have.

Two directions. `schema_of` turns a Python annotation into a schema: the common ones here, anything richer by
pydantic, which is loaded only then. `violations` holds a value against a schema and reports everything that is
wrong at once, as ``{field, rule, message}``, because a model mends all of it in one turn. An evaluator of our own,
because the run path has no room for a library's import, and because the messages are a user interface.
"""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from albert_tools.engine.model.definition import Schema, spell

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    object: {},
    Any: {},
}


def schema_of(annotation: Any) -> Schema:
    """The JSON Schema of a resolved Python annotation (``str``, ``list[int]``, a TypedDict, ``X | None``, …)."""
    try:
        if annotation in _PLAIN:
            return dict(_PLAIN[annotation])
    except TypeError:
        pass
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return union_of([schema_of(a) for a in arguments])
    if origin in (list, set, frozenset) and len(arguments) == 1:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is dict and arguments[:1] == (str,):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin is tuple and arguments[-1:] == (...,):
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin in (typing.Required, typing.NotRequired):
        return schema_of(arguments[0])
    if is_typeddict(annotation):
        hints = typing.get_type_hints(annotation, include_extras=True)
        # Python itself overlooks `NotRequired` where annotations are strings, as `from __future__ import annotations` makes them.
        said = {name: get_origin(hint) for name, hint in hints.items()}
        usual = annotation.__required_keys__
        return {
            "type": "object",
            "properties": {name: schema_of(hint) for name, hint in hints.items()},
            "required": [
                n for n in hints if said[n] is typing.Required or (n in usual and said[n] is not typing.NotRequired)
            ],
            "additionalProperties": False,
        }
    from pydantic import TypeAdapter

    return TypeAdapter(annotation).json_schema()


def union_of(schemas: list[Schema]) -> Schema:
    """``anyOf``, or a list of types where all are plain."""
    if all(set(s) == {"type"} and isinstance(s["type"], str) for s in schemas):
        kinds = list(dict.fromkeys(s["type"] for s in schemas))
        return {"type": kinds[0] if len(kinds) == 1 else kinds}
    return {"anyOf": schemas}


Violation = dict[str, str]

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (dict,),
}


def kind_of(value: Any) -> str:
    """The JSON type name of a value."""
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    return next((k for k, ts in _KINDS.items() if isinstance(value, ts)), type(value).__name__)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return math.isfinite(value) and value.is_integer()
    return isinstance(value, _KINDS.get(kind, ()))


def violations(value: Any, schema: Schema, field: str = "", root: Schema | None = None) -> list[Violation]:
    """Everything in `value` that breaks `schema`, in the order of its fields; empty when it holds.

    `field` is the path as people write it: ``rows[3].name``.
    """
    return list(_walk(value, schema, field, schema if root is None else root))


def _walk(value: Any, schema: Schema, field: str, root: Schema) -> Iterator[Violation]:
    def wrong(rule: str, message: str, at: str = field) -> Violation:
        return {"field": at, "rule": rule, "message": f"{at}: {message}" if at else message}

    if not schema:
        return
    if "$ref" in schema:
        target: Any = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[part]
        yield from _walk(value, target, field, root)
        return
    for combiner in ("anyOf", "oneOf"):
        if combiner in schema and all(violations(value, s, field, root) for s in schema[combiner]):
            yield wrong("type", f"expected {spell(schema)}, got {_show(value)}")
            return
    kinds = schema.get("type")
    if kinds is not None:
        names = kinds if isinstance(kinds, list) else [kinds]
        if not any(_is(value, k) for k in names):
            yield wrong("type", f"expected {' or '.join(names)}, got {_show(value)}")
            return
    if "enum" in schema and not any(_same(value, v) for v in schema["enum"]):
        yield wrong("enum", f"expected one of {spell(schema)}, got {_show(value)}")
    if "const" in schema and not _same(value, schema["const"]):
        yield wrong("const", f"expected {spell(schema)}, got {_show(value)}")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            least = schema["minLength"]
            yield wrong("min_length", "must not be empty" if least == 1 else f"must have {least} characters or more")
        if len(value) > schema.get("maxLength", len(value)):
            yield wrong("max_length", f"must have {schema['maxLength']:,} characters or fewer, has {len(value):,}")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield wrong("pattern", f"must match {schema['pattern']}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and not value >= schema["minimum"]:
            yield wrong("minimum", f"must be {schema['minimum']} or more, is {value}")
        if "maximum" in schema and not value <= schema["maximum"]:
            yield wrong("maximum", f"must be {schema['maximum']} or less, is {value}")
        if "exclusiveMinimum" in schema and not value > schema["exclusiveMinimum"]:
            yield wrong("minimum", f"must be more than {schema['exclusiveMinimum']}, is {value}")
        if "exclusiveMaximum" in schema and not value < schema["exclusiveMaximum"]:
            yield wrong("maximum", f"must be less than {schema['exclusiveMaximum']}, is {value}")
    elif isinstance(value, list | tuple):
        if len(value) < schema.get("minItems", 0):
            yield wrong("min_items", f"must have {schema['minItems']:,} items or more, has {len(value):,}")
        if len(value) > schema.get("maxItems", len(value)):
            yield wrong("max_items", f"must have {schema['maxItems']:,} items or fewer, has {len(value):,}")
        prefix = schema.get("prefixItems", [])
        for i, item in enumerate(value):
            inner = prefix[i] if i < len(prefix) else schema.get("items", {})
            if isinstance(inner, dict):
                yield from _walk(item, inner, f"{field}[{i}]", root)
    elif isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                at = f"{field}.{name}" if field else name
                yield wrong("required", "is required", at)
        for name, item in value.items():
            at = f"{field}.{name}" if field else str(name)
            if name in properties:
                yield from _walk(item, properties[name], at, root)
            elif schema.get("additionalProperties") is False:
                from albert_tools.engine.model.naming import did_you_mean

                yield wrong("unknown", f"there is no such name here{did_you_mean(str(name), properties)}", at)
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from _walk(item, schema["additionalProperties"], at, root)


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _show(value: Any) -> str:
    kind = kind_of(value)
    if kind in ("array", "object", "null"):
        return kind
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return kind
    return f"{kind} {text if len(text) <= 40 else text[:37] + '…'}"
