"""Types and JSON Schemas: whether a value of a type never fits a schema, and the schema that all values of a type fit."""

from __future__ import annotations

from typing import Any

from albert_tools.engine.check.types.value_types import Alternative, Type, join, spell
from albert_tools.engine.model.definition import Schema
from albert_tools.engine.model.json_values import REMEDIES, problem_in
from albert_tools.engine.model.schema import union_of
from albert_tools.engine.model.validation import violations

#: The kinds of schemas that a value of a class can fit. A float can be a whole number.
_KINDS = {
    "None": {"null"},
    "bool": {"boolean"},
    "int": {"integer", "number"},
    "float": {"integer", "number"},
    "str": {"string"},
    "list": {"array"},
    "tuple": {"array"},
    "dict": {"object"},
}
#: The deepest part of a schema that is compared.
_MAX_DEPTH = 10


def never_fits(type_: Type, schema: Schema) -> bool:
    """Whether no value of a type fits a schema. Every schema takes JSON values only."""
    return _Fit(schema).never(type_, schema, 0)


def why_no_json(type_: Type) -> tuple[str, str] | None:
    """Why no value of a type can leave a program, and what to write; None if one can, as far as the type says."""
    if not never_fits(type_, {}):
        return None
    if all(a.odd_keys for a in type_ or ()):
        return "this dict has a key that is no text, and JSON has only text as keys", "convert it: {str(key): …}"
    names = {a.name for a in type_ or ()} - _KINDS.keys()
    if not names:
        return "this holds a value that is not JSON", "JSON has text, numbers, None, lists, and dicts with text as keys"
    remedies = {REMEDIES.get(name.rpartition(".")[2], "list(…) makes a list of it") for name in names}
    return f"this is {spell(type_)}, which can't leave the program", " or ".join(sorted(remedies))


#: The schemas of classes without content.
_SCHEMAS: dict[str, Schema] = {
    "None": {"type": "null"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
}


def schema_for(type_: Type) -> Schema:
    """A schema that all values of a type fit."""
    alternatives: list[Schema] = []
    for each in type_ or ():
        schema = _schema_of(each)
        if schema is None:
            return {}
        if schema not in alternatives:
            alternatives.append(schema)
    return alternatives[0] if len(alternatives) == 1 else union_of(alternatives) if alternatives else {}


def _schema_of(value: Alternative) -> Schema | None:
    if value.name in _SCHEMAS:
        return dict(_SCHEMAS[value.name])
    if value.name in ("list", "tuple"):
        items = join([f.type for f in value.fields]) if value.fields else value.items
        return {"type": "array", "items": schema_for(items)}
    if value.name != "dict":
        return None
    if value.fields is None:
        return {"type": "object", "additionalProperties": schema_for(value.items)}
    if problem_in([str(f.key) for f in value.fields]) is not None:
        return {"type": "object"}
    return {
        "type": "object",
        "properties": {str(f.key): schema_for(f.type) for f in value.fields},
        "required": [str(f.key) for f in value.fields if f.required],
        "additionalProperties": False,
    }


class _Fit:
    def __init__(self, root: Schema) -> None:
        self.root = root

    def never(self, type_: Type, schema: Any, depth: int) -> bool:
        """Whether no value of a type fits this part of the schema."""
        if not type_ or depth > _MAX_DEPTH:
            return False
        if not isinstance(schema, dict):
            schema = {}  # any JSON value
        if "$ref" in schema:
            name = str(schema["$ref"]).removeprefix("#/$defs/")
            return self.never(type_, self.root.get("$defs", {}).get(name), depth + 1)
        return all(self._unfit(a, schema, depth) for a in type_)

    def _unfit(self, value: Alternative, schema: Schema, depth: int) -> bool:
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return all(self.never((value,), part, depth + 1) for part in schema[key])
        if value.constant:
            return bool(violations(value.constant[0], {**schema, "$defs": self.root.get("$defs", {})}))
        if value.name not in _KINDS or value.odd_keys == "some":
            return True
        kinds = schema.get("type")
        if kinds is not None and _KINDS.get(value.name, set()).isdisjoint(
            kinds if isinstance(kinds, list) else [kinds]
        ):
            return True
        if value.fields is None:
            return False
        if value.name == "dict":
            return self._unfit_dict(value, schema, depth)
        return any(self.never(f.type, schema.get("items"), depth + 1) for f in value.fields)

    def _unfit_dict(self, value: Alternative, schema: Schema, depth: int) -> bool:
        """Whether a dict with known keys lacks a key, has a key too many, or has a wrong value."""
        fields = {f.key: f for f in value.fields or ()}
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        if any(name not in fields for name in schema.get("required", ())):
            return True
        sure = [f for f in fields.values() if f.required]
        return any(
            (f.key not in properties and others is False)
            or self.never(f.type, properties.get(f.key, others), depth + 1)
            for f in sure
        )
