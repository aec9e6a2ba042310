"""Check a hand-written schema when its tool is declared, and read the parameters from such a schema.

Without this check, an error in the schema would only appear when a call is checked, and would deny every call. Schemas that are
made from annotations need no check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from albert_tools.engine.model.definition import Schema, ToolParameter

_KINDS = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_FIGURES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_MANY = ("anyOf", "oneOf", "prefixItems")
_ONE = ("items", "additionalProperties")
#: The other keywords that are checked, and those that check nothing.
_OTHERS = frozenset(
    "type pattern enum const required properties $defs format $ref title description default examples $schema $id $comment "
    "deprecated readOnly writeOnly".split()
)
_KNOWN = _OTHERS.union(_COUNTS, _FIGURES, _MANY, _ONE)
_REFERENCE = "#/$defs/"


def fault_in(schema: Any) -> str | None:
    """A short description of the error in a schema; None if the schema is valid."""
    if not isinstance(schema, dict):
        return f"a schema is a dict, not {schema!r:.100}"
    for key, value in schema.items():
        if not _sound(key, value):
            return f"{key!r:.100} can't be {value!r:.100}"
    return next((fault for each in _inner(schema) if (fault := fault_in(each)) is not None), None)


def parameters_of(tool: str, schema: Any) -> list[ToolParameter]:
    """The parameters that the schema of an object describes.

    Raises:
        TypeError: The schema is invalid, is not of an object, or has a keyword or a reference that can't be checked.
    """
    fault = fault_in(schema) or next(_unusable(schema), None)
    if fault is not None:
        raise TypeError(f"{tool}: the schema of its arguments is not usable: {fault}")
    definitions, required = schema.get("$defs", {}), schema.get("required", ())
    parameters = []
    for name, part in schema.get("properties", {}).items():
        own = {key: value for key, value in part.items() if key not in ("description", "default")}
        if definitions and "$ref" in str(own):
            own["$defs"] = definitions
        parameters.append(ToolParameter(name, own, part.get("description", ""), name in required, part.get("default")))
    return parameters


def _unusable(schema: Schema) -> Iterator[str]:
    """Why a valid schema can't describe the parameters of a tool."""
    if schema.get("type") != "object":
        yield "its type must be object"
    yield from unchecked(schema, schema.get("$defs", {}))
    properties = schema.get("properties", {})
    for name in properties:
        if not str(name).isidentifier() or not str(name).isascii():
            yield f"{name!r} can't be the name of a parameter"
    for name in schema.get("required", ()):
        if name not in properties:
            yield f"it requires {name!r}, which is no property"


def _inner(schema: Schema) -> list[Any]:
    """The schemas directly inside a schema."""
    inner = [s for key in _MANY for s in schema.get(key, ())]
    inner += [schema[key] for key in _ONE if not isinstance(schema.get(key, True), bool)]
    return inner + [s for key in ("properties", "$defs") for s in schema.get(key, {}).values()]


def unchecked(schema: Schema, definitions: Schema) -> Iterator[str]:
    """The keywords and references of a schema that a check would not follow. To ignore them would accept wrong arguments."""
    for key in schema:
        if key not in _KNOWN and not key.startswith("x-"):
            yield f"the keyword {key!r} is not supported"
    reference = schema.get("$ref", _REFERENCE)
    if not reference.startswith(_REFERENCE) or ("$ref" in schema and reference[len(_REFERENCE) :] not in definitions):
        yield f"there is no {reference!r}"
    for part in _inner(schema):
        yield from unchecked(part, definitions)


def _sound(key: Any, value: Any) -> bool:
    match key:
        case "type":
            kinds = value if isinstance(value, list) else [value]
            return all(isinstance(kind, str) and kind in _KINDS for kind in kinds)
        case "pattern":
            try:
                return isinstance(value, str) and bool(re.compile(value))
            except (re.error, RecursionError, OverflowError):
                return False
        case "enum" | "anyOf" | "oneOf" | "prefixItems":
            return isinstance(value, list | tuple)
        case "required":
            return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
        case "properties" | "$defs":
            return isinstance(value, dict)
        case "format" | "$ref" | "title" | "description":
            return isinstance(value, str)
    if key in _COUNTS:
        return type(value) is int and value >= 0
    return isinstance(key, str) and (key not in _FIGURES or type(value) in (int, float))
