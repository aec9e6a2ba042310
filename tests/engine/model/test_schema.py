"""Schemas from annotations, and everything that breaks one, at once."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Optional, TypedDict

import pytest

from albert_tools.engine.model.definition import spell
from albert_tools.engine.model.primitive import primitive
from albert_tools.engine.model.schema import schema_of, violations


class Row(TypedDict):
    name: str
    n: NotRequired[int]


@pytest.mark.parametrize(
    ("annotation", "schema", "spelt"),
    [
        (str, {"type": "string"}, "string"),
        (Optional[int], {"type": ["integer", "null"]}, "integer or null"),  # noqa: UP045
        (list[str], {"type": "array", "items": {"type": "string"}}, "array of string"),
        (set[int], {"type": "array", "items": {"type": "integer"}}, "array of integer"),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, "array of integer"),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        (Literal["a", 1], {"enum": ["a", 1]}, '"a" | 1'),
        (
            list[str] | int,
            {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "integer"}]},
            "array of string or integer",
        ),
        (Any, {}, "any"),
        (
            Row,
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["name"],
                "additionalProperties": False,
            },
            "{name: string, n?: integer}",
        ),
    ],
)
def test_annotations(annotation: Any, schema: dict[str, Any], spelt: str) -> None:
    assert schema_of(annotation) == schema
    assert spell(schema) == spelt


def test_richer_annotations_by_pydantic() -> None:
    schema = schema_of(tuple[int, str])
    assert violations([1, "a"], schema) == []
    assert violations(["a", 1], schema)


@pytest.mark.parametrize(
    ("value", "schema", "rules"),
    [
        (True, {"type": "integer"}, ["type"]),
        (2.0, {"type": "integer"}, []),
        ("", {"type": "string", "minLength": 1}, ["min_length"]),
        ("a", {"type": "string", "minLength": 3}, ["min_length"]),
        ("abcd", {"type": "string", "maxLength": 3}, ["max_length"]),
        ("b", {"type": "string", "pattern": "^a"}, ["pattern"]),
        (0, {"minimum": 1}, ["minimum"]),
        (9, {"maximum": 5}, ["maximum"]),
        (0, {"exclusiveMinimum": 0}, ["minimum"]),
        (5, {"exclusiveMaximum": 5}, ["maximum"]),
        ([], {"minItems": 1}, ["min_items"]),
        ([1, 2], {"maxItems": 1}, ["max_items"]),
        (["a", "b"], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, ["type"]),
        (3, {"enum": [1, 2]}, ["enum"]),
        (True, {"const": 1}, ["const"]),
        ("x" * 99, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, ["type"]),
        ({"a": 1}, {"additionalProperties": {"type": "string"}}, ["type"]),
        (
            {"b": 1},
            {"required": ["a"], "properties": {"a": {}}, "additionalProperties": False},
            ["required", "unknown"],
        ),
        (
            {"a": {"a": 1}},
            {"$defs": {"x": {"properties": {"a": {"type": "object"}}}}, "properties": {"a": {"$ref": "#/$defs/x"}}},
            ["type"],
        ),
        (object(), {"type": "string"}, ["type"]),
    ],
)
def test_violations(value: Any, schema: dict[str, Any], rules: list[str]) -> None:
    found = violations(value, schema, "it")
    assert [v["rule"] for v in found] == rules
    assert all(v["field"].startswith("it") and v["message"].startswith(v["field"]) for v in found)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: primitive(name="no name")(lambda: None), "can't be a tool's name"),
        (lambda: primitive(name="f", effects=["magic"])(lambda: None), "unknown effect"),  # type: ignore[list-item]
        (lambda: primitive(name="f")(lambda x: None), "needs an annotation"),
    ],
)
def test_primitives_that_cannot_be(function: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        function()


def test_star_parameters_are_refused() -> None:
    def many(*args: int) -> None: ...

    with pytest.raises(TypeError, match="ordinary named"):
        primitive(many)
