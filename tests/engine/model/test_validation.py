"""The check of values against schemas, with every message that an agent may get."""

from __future__ import annotations

import json
import time
from typing import Any, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from albert_tools.engine.model.definition import TYPE_NAMES, spell
from albert_tools.engine.model.schema import schema_of
from albert_tools.engine.model.validation import MAX_VIOLATIONS, kind_of, violations


class Point(TypedDict):
    x: int
    label: NotRequired[str]


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
        ("a", {"type": "integer"}, ['expected int, got str "a"']),
        ("a" * 50, {"type": "integer"}, ['expected int, got str "' + "a" * 36 + "…"]),
        (True, {"type": "integer"}, ["expected int, got bool True"]),
        (1, {"type": "boolean"}, ["expected bool, got int 1"]),
        (2.0, {"type": "integer"}, []),
        (2.5, {"type": "integer"}, ["expected int, got float 2.5"]),
        (2, {"type": "number"}, []),
        (None, {"type": ["string", "integer"]}, ["expected str | int, got None"]),
        ([], {"type": "object"}, ["expected dict, got list"]),
        ({1}, {"type": "object"}, ["expected dict, got set"]),
        (1, {"type": "nonsense"}, ["expected nonsense, got int 1"]),
        (1, {"enum": [True, "1"]}, ['expected one of True, "1", got int 1']),
        ("1", {"enum": [True, "1"]}, []),
        ([{"a": 1.0}], {"const": [{"a": 1}]}, []),
        ([{"a": True}], {"enum": [[{"a": 1}]]}, ['expected one of [{"a": 1}], got list']),
        (2, {"const": 1}, ["expected 1, got int 2"]),
        (1, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ["expected str | None, got int 1"]),
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
        ([1, "a", None], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, ["[2]: expected str, got None"]),
        ([1, 2], {"prefixItems": [{"type": "integer"}], "items": False}, []),
        ({"n": "x"}, OBJECT, ["name: is required", 'n: expected int, got str "x"']),
        ({"name": "a", "nam": 1}, OBJECT, ["nam: unknown name; did you mean 'name'?"]),
        ({"name": "a", "n" * 3_000_000: 1}, OBJECT, ["n" * 299 + "…: unknown name"]),
        ({"name": ""}, OBJECT, ["name: must not be empty"]),
        ({"anything": 1}, {"type": "object"}, []),
        ({"a": 1}, {"additionalProperties": {"type": "string"}}, ["a: expected str, got int 1"]),
        ([{"name": "a"}, {}], {"items": {"$ref": "#/$defs/row"}, "$defs": {"row": OBJECT}}, ["[1].name: is required"]),
        ({"rows": [{"x": None}]}, {"properties": {"rows": {"items": {"required": ["y"]}}}}, ["rows[0].y: is required"]),
    ],
)  # fmt: skip
def test_violations(value: Any, schema: dict[str, Any], said: list[str]) -> None:
    assert [v["message"] for v in violations(value, schema)] == said


def test_all_violations_are_reported_with_their_places() -> None:
    found = violations({"rows": [{"x": "a"}, {}], "more": 1}, schema_of(dict[str, list[Point]]), "given")
    assert [(v["field"], v["rule"]) for v in found] == [
        ("given.rows[0].x", "type"),
        ("given.rows[1].x", "required"),
        ("given.more", "type"),
    ]


TREE = {
    "$ref": "#/$defs/a",
    "$defs": {
        name: {
            "type": "object",
            "properties": {"in": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"type": "null"}]}},
        }
        for name in ("a", "b")
    },
}


def nested(depth: int, innermost: Any) -> Any:
    for _ in range(depth):
        innermost = {"in": innermost}
    return innermost


def test_no_more_violations_are_reported_than_somebody_reads() -> None:
    closed = {"type": "object", "properties": {"a_1": {}}, "additionalProperties": False}
    objects = {"type": "array", "items": {"anyOf": [{"type": "string"}, closed]}}
    began = time.process_time()
    assert len(violations({f"a{i}": i for i in range(100_000)}, closed)) == MAX_VIOLATIONS
    assert len(violations([{"a1": 1}] * 100_000, objects)) == MAX_VIOLATIONS
    assert time.process_time() - began < 1


def test_alternatives_multiply_the_values_only_up_to_a_bound() -> None:
    # With all alternatives for each value, and a message for each, these would take hours.
    words: dict[str, Any] = {"enum": [f"k{i}" for i in range(1_500)]}
    numbers = [{"type": "integer", "minimum": 10_000 + i} for i in range(900)]
    last: dict[str, Any] = {"anyOf": [*numbers, {"type": "integer", "maximum": 9}]}
    assert violations(["k15001"] * 10_000, {"items": {"anyOf": [words, {"type": "string"}]}}) == []
    assert violations([20_000] * 10_000, {"items": last}) == []
    assert len(violations(["k15001"] * 10_000, {"items": words})) == MAX_VIOLATIONS
    assert violations([5] * 100, {"items": last}) == []
    assert violations([5] * 10_000, {"items": {"type": ["string"] * 3_000 + ["integer"]}}) == []
    similar = ["ab" * 20 + f"{i:020b}".translate({48: "a", 49: "b"}) for i in range(300)]
    assert len(violations(["ba" * 30] * 100, {"items": {"enum": similar}})) == MAX_VIOLATIONS
    long_name = {"K" * 400_000: [0] * 100_000 + ["x"]}
    assert len(violations(long_name, {"additionalProperties": {"items": {"type": "integer"}}})) == 1
    required = {"type": "object", "required": [f"n{i}" for i in range(1_000)]}
    lists = {"enum": [[0] * 200 + [i] for i in range(100)]}
    for value, alternative in (({}, required), ([0] * 201, lists)):
        found = violations([value] * 200_000, {"items": {"anyOf": [alternative, {"maxItems": 500}]}})
        assert [v["rule"] for v in found] == ["size"]
    assert [v["message"] for v in violations([5] * 1_000_000, {"items": last}, "xs")] == [
        "xs: has too many values for so many alternatives"
    ]


def test_a_schema_that_refers_to_itself_is_checked_in_linear_time() -> None:
    # Each level has two alternatives, so trying all of them at each level would take 2 ** 40 steps.
    assert violations(nested(40, None), TREE) == []
    assert [v["field"] for v in violations(nested(40, 1), TREE)] == ["in"]
    assert spell(TREE) == "{in?: a | {in?: a | b | None} | None}"


def test_a_definition_that_is_only_itself_or_a_text() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}}}
    assert violations("a", schema) == []
    assert [v["message"] for v in violations(1, schema)] == ["expected a | str, got int 1"]
    only_itself = {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}], "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert [v["message"] for v in violations(1, only_itself)] == ["expected a | str, got int 1"]


def test_a_value_that_nests_too_deep_is_refused() -> None:
    chain = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"in": {"$ref": "#/$defs/a"}}}}}
    assert violations(nested(50, {}), chain) == []
    [deep] = violations(nested(900, {}), chain)
    assert (deep["rule"], deep["message"].endswith(": is nested too deep")) == ("depth", True)


def test_equal_paths_of_different_parts_are_both_checked() -> None:
    number = {"$ref": "#/$defs/n"}
    schema = {
        "additionalProperties": {"anyOf": [number, {"additionalProperties": number}]},
        "$defs": {"n": {"type": "integer"}},
    }
    assert [v["field"] for v in violations({"a.b": 1, "a": {"b": "x"}}, schema)] == ["a.b"]


def test_kinds() -> None:
    values = [True, None, "a", 1, 1.5, [], (), {}, {1}]
    kinds = ["bool", "None", "str", "int", "float", "list", "list", "dict", "set"]
    assert [kind_of(v) for v in values] == kinds


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
def test_the_rule_of_each_violation(value: Any, schema: dict[str, Any], rules: list[str]) -> None:
    found = violations(value, schema, "it")
    assert [v["rule"] for v in found] == rules
    assert all(v["field"].startswith("it") and v["message"].startswith(v["field"]) for v in found)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3),
    max_leaves=6,
)


def _fitting(value: Any) -> dict[str, Any]:
    """The strictest schema that this value matches."""
    if isinstance(value, list):
        items = [_fitting(v) for v in value]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if isinstance(value, dict):
        inner = {k: _fitting(v) for k, v in value.items()}
        return {"type": "object", "properties": inner, "required": list(inner), "additionalProperties": False}
    return {"const": value, "type": next(k for k, name in TYPE_NAMES.items() if name == kind_of(value))}


@given(VALUES, VALUES)
def test_a_value_matches_its_own_schema_and_no_other_value_does(value: Any, other: Any) -> None:
    schema = _fitting(value)
    assert violations(value, schema) == []
    same = json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
    found = violations(other, schema)
    assert (not found) == same or _equal(value, other)
    assert all(v["message"].startswith(v["field"]) for v in found)


def _equal(a: Any, b: Any) -> bool:
    """In JSON, 1 equals 1.0."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    return bool(a == b)


SMALL = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 2.5, 3, "", "a", "ab"]),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from("pq"), x),
    max_leaves=5,
)
_KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
_BOUNDS = st.sampled_from(["minLength", "maxLength", "minItems", "maxItems", "minimum", "exclusiveMaximum"])
SCHEMAS = st.recursive(
    st.builds(lambda kind: {"type": kind}, _KINDS | st.lists(_KINDS, min_size=1, max_size=3, unique=True))
    | st.builds(lambda values: {"enum": values}, st.lists(SMALL, min_size=1, max_size=3))
    | st.builds(lambda value: {"const": value}, SMALL)
    | st.dictionaries(_BOUNDS, st.integers(0, 3), max_size=3),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "properties": st.dictionaries(st.sampled_from("pq"), inner),
            "required": st.lists(st.sampled_from("pq"), unique=True),
            "additionalProperties": st.booleans() | inner,
        },
    ),
    max_leaves=8,
)


@given(SCHEMAS, SMALL)
def test_a_value_fits_if_jsonschema_says_so(schema: dict[str, Any], value: Any) -> None:
    assert (not violations(value, schema)) == Draft202012Validator(schema).is_valid(value)
