"""Annotations as schemas, values against schemas: every message that an agent may meet."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal, NotRequired, Optional, Required, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.definition import spell
from albert_tools.engine.model.schema import kind_of, schema_of, violations


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
        (str, "string"),
        (Any, "any"),
        (None, "null"),
        (list, "array"),
        (list[int], "array of integer"),
        (set[str], "array of string"),
        (tuple[int, ...], "array of integer"),
        (dict[str, bool], "object of boolean"),
        (dict[str, Any], "object of any"),
        (Literal["a", 1, None], '"a" | 1 | null'),
        (int | None, "integer or null"),
        (int | int, "integer"),
        (Optional[list[int]], "array of integer or null"),  # noqa: UP045
        (Point, "{x: integer, label?: string}"),
        (Loose, "{a: integer, b?: array of {x: integer, label?: string}}"),
        (Rich, "{n: integer}"),
    ],
)
def test_annotations(annotation: Any, spelled: str) -> None:
    assert spell(schema_of(annotation)) == spelled


def test_an_annotation_that_can_not_be_hashed() -> None:
    assert schema_of(Literal[()]) == {"enum": []}
    with pytest.raises(Exception, match="schema"):
        schema_of([int])


OBJECT = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "n": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "schema", "said"),
    [
        (1, {}, []),
        ("a", {"type": "integer"}, ['expected integer, got string "a"']),
        ("a" * 50, {"type": "integer"}, ['expected integer, got string "' + "a" * 36 + "…"]),
        (True, {"type": "integer"}, ["expected integer, got boolean true"]),
        (1, {"type": "boolean"}, ["expected boolean, got integer 1"]),
        (2.0, {"type": "integer"}, []),
        (2.5, {"type": "integer"}, ["expected integer, got number 2.5"]),
        (2, {"type": "number"}, []),
        (None, {"type": ["string", "integer"]}, ["expected string or integer, got null"]),
        ([], {"type": "object"}, ["expected object, got array"]),
        ({1}, {"type": "object"}, ["expected object, got set"]),
        (1, {"type": "nonsense"}, ["expected nonsense, got integer 1"]),
        (1, {"enum": [True, "1"]}, ['expected one of true | "1", got integer 1']),
        ("1", {"enum": [True, "1"]}, []),
        (2, {"const": 1}, ["expected 1, got integer 2"]),
        (1, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ["expected string or null, got integer 1"]),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, []),
        ("", {"minLength": 1}, ["must not be empty"]),
        ("a", {"minLength": 2}, ["must have 2 characters or more"]),
        ("abc", {"maxLength": 2}, ["must have 2 characters or fewer, has 3"]),
        ("abc", {"pattern": "^x"}, ["must match ^x"]),
        (0, {"minimum": 1}, ["must be 1 or more, is 0"]),
        (3, {"maximum": 2}, ["must be 2 or less, is 3"]),
        (0, {"exclusiveMinimum": 0}, ["must be more than 0, is 0"]),
        (3, {"exclusiveMaximum": 3}, ["must be less than 3, is 3"]),
        (float("nan"), {"minimum": 1}, ["must be 1 or more, is nan"]),
        ([], {"minItems": 1}, ["must have 1 items or more, has 0"]),
        ([1, 2], {"maxItems": 1}, ["must have 1 items or fewer, has 2"]),
        ([1, "a", None], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, ["[2]: expected string, got null"]),
        ([1, 2], {"prefixItems": [{"type": "integer"}], "items": False}, []),
        ({"n": "x"}, OBJECT, ["name: is required", 'n: expected integer, got string "x"']),
        ({"name": "a", "nam": 1}, OBJECT, ["nam: unknown name; did you mean 'name'?"]),
        ({"name": ""}, OBJECT, ["name: must not be empty"]),
        ({"anything": 1}, {"type": "object"}, []),
        ({"a": 1}, {"additionalProperties": {"type": "string"}}, ["a: expected string, got integer 1"]),
        ([{"name": "a"}, {}], {"items": {"$ref": "#/$defs/row"}, "$defs": {"row": OBJECT}}, ["[1].name: is required"]),
        ({"rows": [{"x": None}]}, {"properties": {"rows": {"items": {"required": ["y"]}}}}, ["rows[0].y: is required"]),
    ],
)  # fmt: skip
def test_violations(value: Any, schema: dict[str, Any], said: list[str]) -> None:
    assert [v["message"] for v in violations(value, schema)] == said


def test_all_at_once_with_their_places() -> None:
    found = violations({"rows": [{"x": "a"}, {}], "more": 1}, schema_of(dict[str, list[Point]]), "given")
    assert [(v["field"], v["rule"]) for v in found] == [
        ("given.rows[0].x", "type"),
        ("given.rows[1].x", "required"),
        ("given.more", "type"),
    ]


def test_kinds() -> None:
    values = [True, None, "a", 1, 1.5, [], (), {}, {1}]
    kinds = ["boolean", "null", "string", "integer", "number", "array", "array", "object", "set"]
    assert [kind_of(v) for v in values] == kinds


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3),
    max_leaves=6,
)


def _fitting(value: Any) -> dict[str, Any]:
    """A schema that this value meets, as strict as can be."""
    if isinstance(value, list):
        items = [_fitting(v) for v in value]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if isinstance(value, dict):
        inner = {k: _fitting(v) for k, v in value.items()}
        return {"type": "object", "properties": inner, "required": list(inner), "additionalProperties": False}
    return {"const": value, "type": kind_of(value)}


@given(VALUES, VALUES)
def test_a_value_meets_its_own_schema_and_no_other_value_does(value: Any, other: Any) -> None:
    schema = _fitting(value)
    assert violations(value, schema) == []
    same = json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
    found = violations(other, schema)
    assert (not found) == same or _equal(value, other)
    assert all(v["message"].startswith(v["field"]) for v in found)


def _equal(a: Any, b: Any) -> bool:
    """1 is 1.0 in JSON."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    return bool(a == b)
