"""Check a hand-written schema when its tool is declared.

Without this check, an error in the schema would only appear when a call is checked, and would deny every call. Schemas that are
made from annotations need no check.
"""

from __future__ import annotations

import re
from typing import Any

_KINDS = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_FIGURES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_MANY = ("anyOf", "oneOf", "prefixItems")
_ONE = ("items", "additionalProperties")


def fault_in(schema: Any) -> str | None:
    """A short description of the error in a schema; None if the schema is valid."""
    if not isinstance(schema, dict):
        return f"a schema is a dict, not {schema!r:.100}"
    for key, value in schema.items():
        if not _sound(key, value):
            return f"{key!r:.100} can't be {value!r:.100}"
    inner = [s for key in _MANY for s in schema.get(key, ())]
    inner += [schema[key] for key in _ONE if not isinstance(schema.get(key, True), bool)]
    inner += [s for key in ("properties", "$defs") for s in schema.get(key, {}).values()]
    return next((fault for each in inner if (fault := fault_in(each)) is not None), None)


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
