"""Schemas for clients that don't know lists of types: ``type: [string, "null"]`` becomes ``anyOf``, which means the same."""

from __future__ import annotations

from typing import Any

from albert_tools.engine.model.definition import Schema

#: Keywords whose value is a schema, a list of schemas, and a dict of schemas by name.
_ONE, _MANY, _NAMED = (
    ("items", "additionalProperties", "not"),
    ("anyOf", "oneOf", "allOf", "prefixItems"),
    ("properties", "$defs"),
)
#: Keywords that say nothing about a value. They stay beside ``anyOf``.
_NOTES = frozenset("title description default examples $defs $schema $id $comment deprecated".split())
#: The types that a keyword is about. It ignores values of other types.
_ABOUT = {
    key: kinds
    for kinds, keys in {
        ("string",): "minLength maxLength pattern format",
        ("integer", "number"): "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
        ("array",): "items prefixItems minItems maxItems uniqueItems",
        ("object",): "properties required additionalProperties",
    }.items()
    for key in keys.split()
}


def without_type_lists(schema: Any) -> Any:
    """The schema without lists of types. Anything but a dict, for example ``True``, is returned as it is."""
    if not isinstance(schema, dict):
        return schema
    made: Schema = {}
    for key, value in schema.items():
        if key in _ONE:
            made[key] = without_type_lists(value)
        elif key in _MANY:
            made[key] = [without_type_lists(part) for part in value]
        elif key in _NAMED:
            made[key] = {name: without_type_lists(part) for name, part in value.items()}
        else:
            made[key] = value
    kinds = made.get("type")
    if not isinstance(kinds, list):
        return made
    del made["type"]
    said = {key: made.pop(key) for key in [*made] if key not in _NOTES}
    return made | {"anyOf": [{"type": kind} | _about(kind, said) for kind in kinds]}


def _about(kind: str, said: Schema) -> Schema:
    return {key: value for key, value in said.items() if kind in _ABOUT.get(key, (kind,))}
