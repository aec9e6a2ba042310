"""The part of JSON Schema (2020-12) that parameter types need: the schema of a Python annotation.

`schema_of` handles common annotations itself. For other annotations it uses pydantic, which is only imported then. `validation`
checks values.
"""

from __future__ import annotations

import types
import typing
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

from albert_tools.engine.model.definition import Schema

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

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


#: Packages whose annotations are passed to pydantic.
_RICHER = ("pydantic", "annotated_types")


class Bound:
    """A part of a JSON Schema inside an annotation: ``Annotated[str, Bound(maxLength=80)]``.

    Pydantic also adds it to the schemas that it makes.
    """

    __slots__ = ("schema",)

    def __init__(self, **schema: Any) -> None:
        self.schema: Schema = schema

    def __repr__(self) -> str:
        return f"Bound({', '.join(f'{k}={v!r}' for k, v in self.schema.items())})"

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return {**handler(core), **self.schema}


def schema_of(annotation: Any) -> Schema:
    """The JSON Schema of a resolved Python annotation (``str``, ``list[int]``, a TypedDict, ``X | None``, …).

    The `Bound`s in an ``Annotated`` are merged over the schema of its type.
    """
    try:
        if annotation in _PLAIN:
            return dict(_PLAIN[annotation])
    except TypeError:
        pass
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated and not any(type(a).__module__.startswith(_RICHER) for a in arguments[1:]):
        schema = schema_of(arguments[0])
        for part in arguments[1:]:
            schema |= part.schema if isinstance(part, Bound) else {}
        return schema
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
        # With `from __future__ import annotations`, Python itself does not recognize `NotRequired`.
        marks = {name: get_origin(hint) for name, hint in hints.items()}
        usual = annotation.__required_keys__
        return {
            "type": "object",
            "properties": {name: schema_of(hint) for name, hint in hints.items()},
            "required": [
                n for n in hints if marks[n] is typing.Required or (n in usual and marks[n] is not typing.NotRequired)
            ],
            "additionalProperties": False,
        }
    from pydantic import TypeAdapter

    return TypeAdapter(annotation).json_schema()


def union_of(schemas: list[Schema]) -> Schema:
    """``anyOf``, or a list of types if all schemas are plain types."""
    if all(set(s) == {"type"} and isinstance(s["type"], str) for s in schemas):
        kinds = list(dict.fromkeys(s["type"] for s in schemas))
        return {"type": kinds[0] if len(kinds) == 1 else kinds}
    return {"anyOf": schemas}
