"""Whether a value of a type never fits a JSON Schema, so that passing it to a tool or returning it always fails."""

from __future__ import annotations

from typing import Any

from albert_tools.engine.check.types.value_types import Alternative, Type
from albert_tools.engine.model.definition import Schema
from albert_tools.engine.model.schema import violations

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
    """Whether no value of a type fits a schema."""
    return _Fit(schema).never(type_, schema, 0)


class _Fit:
    def __init__(self, root: Schema) -> None:
        self.root = root

    def never(self, type_: Type, schema: Any, depth: int) -> bool:
        """Whether no value of a type fits this part of the schema."""
        if not type_ or not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return False
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
        kinds = schema.get("type")
        if kinds is not None and _KINDS.get(value.name, set()).isdisjoint(
            kinds if isinstance(kinds, list) else [kinds]
        ):
            return True
        if value.fields is None:
            return False
        return self._unfit_dict(value, schema, depth) if value.name == "dict" else False

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
