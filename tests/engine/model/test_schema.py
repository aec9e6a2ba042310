"""Schemas of annotations."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NotRequired, Optional, Required, TypedDict

import pytest

from albert_tools.engine.model.definition import spell
from albert_tools.engine.model.schema import schema_of
from albert_tools.engine.model.validation import violations


class Point(TypedDict):
    x: int
    label: NotRequired[str]


class Loose(TypedDict, total=False):
    a: Required[int]
    b: list[Point]


@dataclasses.dataclass
class Rich:
    n: int


@pytest.mark.parametrize(
    ("annotation", "spelled"),
    [
        (str, "str"),
        (Any, "Any"),
        (None, "None"),
        (list, "list"),
        (list[int], "list[int]"),
        (set[str], "list[str]"),
        (tuple[int, ...], "list[int]"),
        (dict[str, bool], "dict[str, bool]"),
        (dict[str, Any], "dict[str, Any]"),
        (Literal["a", 1, None], 'Literal["a", 1, None]'),
        (int | None, "int | None"),
        (int | int, "int"),
        (Optional[list[int]], "list[int] | None"),  # noqa: UP045
        (Point, "{x: int, label?: str}"),
        (Loose, "{a: int, b?: list[{x: int, label?: str}]}"),
        (Rich, "{n: int}"),
    ],
)
def test_annotations(annotation: Any, spelled: str) -> None:
    assert spell(schema_of(annotation)) == spelled


def test_annotations_without_a_hash() -> None:
    assert schema_of(Literal[()]) == {"enum": []}
    with pytest.raises(Exception, match="schema"):
        schema_of([int])


class Row(TypedDict):
    name: str
    n: NotRequired[int]


@pytest.mark.parametrize(
    ("annotation", "schema", "spelt"),
    [
        (str, {"type": "string"}, "str"),
        (Optional[int], {"type": ["integer", "null"]}, "int | None"),  # noqa: UP045
        (list[str], {"type": "array", "items": {"type": "string"}}, "list[str]"),
        (set[int], {"type": "array", "items": {"type": "integer"}}, "list[int]"),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, "list[int]"),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        (Literal["a", 1], {"enum": ["a", 1]}, 'Literal["a", 1]'),
        (
            list[str] | int,
            {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "integer"}]},
            "list[str] | int",
        ),
        (Any, {}, "Any"),
        (
            Row,
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["name"],
                "additionalProperties": False,
            },
            "{name: str, n?: int}",
        ),
    ],
)
def test_the_schema_of_an_annotation(annotation: Any, schema: dict[str, Any], spelt: str) -> None:
    assert schema_of(annotation) == schema
    assert spell(schema) == spelt


def test_pydantic_makes_the_schemas_of_other_annotations() -> None:
    schema = schema_of(tuple[int, str])
    assert violations([1, "a"], schema) == []
    assert violations(["a", 1], schema)
