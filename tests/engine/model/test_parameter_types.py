"""Each bound at its edge: the last valid value is accepted, and the next value is refused by its rule."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from albert_tools import primitive
from albert_tools.engine.model import bounds, parameter_types
from albert_tools.engine.model.argument_errors import refused_arguments
from albert_tools.engine.model.definition import excludes
from albert_tools.engine.model.schema import Bound, schema_of
from albert_tools.engine.model.validation import violations

#: Two bytes in UTF-8.
WIDE = "é"


def rules(value: Any, kind: Any) -> list[str]:
    return [v["rule"] for v in violations(value, schema_of(kind), "it")]


@pytest.mark.parametrize(
    ("kind", "good", "bad", "rule"),
    [
        (parameter_types.Identifier, "a" * 256, "a" * 257, "max_length"),
        (parameter_types.Identifier, "a", "", "min_length"),
        (parameter_types.Provider, "a" * 256, "a" * 257, "max_length"),
        (parameter_types.Provider, "a", "", "min_length"),
        (parameter_types.ModelName, "a" * 256, "a" * 257, "max_length"),
        (parameter_types.ModelName, "a", "", "min_length"),
        (parameter_types.CategoryName, "a" * 256, "a" * 257, "max_length"),
        (parameter_types.CategoryName, "a", "", "min_length"),
        (parameter_types.DedupeKey, "a" * 256, "a" * 257, "max_length"),
        (parameter_types.DedupeKey, "", None, "type"),
        (parameter_types.FilePath, "a" * 4096, "a" * 4097, "max_length"),
        (parameter_types.FilePath, WIDE * 2048, WIDE * 2049, "max_bytes"),
        (parameter_types.FilePath, "a", "", "min_length"),
        (parameter_types.FilePath, "a b", "a\0b", "nul"),
        (parameter_types.FilePath, "a/..b/c..", "a/../b", "path_traversal"),
        (parameter_types.FilePath, "...", "..", "path_traversal"),
        (parameter_types.WorkingDirectory, "a/...", "a/..", "path_traversal"),
        (parameter_types.WorkingDirectory, "a" * 4096, "a" * 4097, "max_length"),
        (parameter_types.WorkingDirectory, WIDE * 2048, WIDE * 2049, "max_bytes"),
        (parameter_types.WorkingDirectory, "", "\0", "nul"),
        (parameter_types.CommandText, "a" * 2**20, "a" * (2**20 + 1), "max_length"),
        (parameter_types.CommandText, WIDE * 2**19, WIDE * 2**19 + "a", "max_bytes"),
        (parameter_types.CommandText, "a", "", "min_length"),
        (parameter_types.CommandText, "a", "\0", "nul"),
        (parameter_types.Argument, "a" * 2**15, "a" * (2**15 + 1), "max_length"),
        (parameter_types.Argument, WIDE * 2**14, WIDE * 2**14 + "a", "max_bytes"),
        (parameter_types.Argument, "", "\0", "nul"),
        (parameter_types.EnvironmentEntry, "a=" + "b" * (2**15 - 2), "a=" + "b" * (2**15 - 1), "max_length"),
        (parameter_types.EnvironmentEntry, "a=", "a", "one_equals"),
        (parameter_types.EnvironmentEntry, "a=b", "a=b=c", "one_equals"),
        (parameter_types.EnvironmentEntry, "a=b", "=b", "one_equals"),
        (parameter_types.MetadataEntry, "a=" + "b" * (2**15 - 2), "a=" + "b" * (2**15 - 1), "max_length"),
        (parameter_types.MetadataEntry, "a=", "a", "one_equals"),
        (parameter_types.MetadataEntry, "a=b", "a=b=c", "one_equals"),
        (parameter_types.TimeoutSeconds, 3600, 3600.1, "maximum"),
        (parameter_types.TimeoutSeconds, 0.001, 0, "minimum"),
        (parameter_types.ReadLimit, 2**30, 2**30 + 1, "maximum"),
        (parameter_types.ReadLimit, 1, 0, "minimum"),
        (parameter_types.MaxTokens, 1_000_000, 1_000_001, "maximum"),
        (parameter_types.MaxTokens, 1, 0, "minimum"),
        (parameter_types.ItemList[int], [0] * 1000, [0] * 1001, "max_items"),
        (parameter_types.Arguments, ["a"] * 1000, ["a"] * 1001, "max_items"),
        (parameter_types.Environment, ["a=b"] * 1000, ["a=b"] * 1001, "max_items"),
        (parameter_types.Metadata, ["a=b"] * 1000, ["a=b"] * 1001, "max_items"),
        (parameter_types.OldText, "a", "", "min_length"),
        (parameter_types.NewText, "", 1, "type"),
        (parameter_types.Hash, "0" * 64, "0" * 63, "hash"),
        (parameter_types.Hash, "b3:" + "f" * 64, "f" * 65, "hash"),
        (parameter_types.Hash, "0" * 64, "", "hash"),
        (parameter_types.Hash, "0" * 64, "A" * 64, "hash"),
        (parameter_types.Hash, "0" * 64, "0" * 64 + "\n", "hash"),
        (parameter_types.PromptHash, "", "0", "hash"),
        (parameter_types.PromptHash, "0" * 64, "0" * 65, "hash"),
    ],
    ids=lambda value: "",
)
def test_at_the_edge(kind: Any, good: Any, bad: Any, rule: str) -> None:
    assert rules(good, kind) == []
    assert rules(bad, kind) == [rule]


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (parameter_types.WriteContent, 100 * 2**20),
        (parameter_types.OldText, 10 * 2**20),
        (parameter_types.NewText, 10 * 2**20),
        (parameter_types.CommandText, 2**20),
    ],
)
def test_large_texts_at_the_edge(kind: Any, most: int) -> None:
    text = "a" * most
    assert rules(text, kind) == []
    assert rules(text + "a", kind) == ["max_length"]
    text = WIDE * (most // 2)
    assert rules(text, kind) == []
    assert rules(text + "a", kind) == ["max_bytes"]


def test_the_bounds_are_those_of_the_manual() -> None:
    figures = {name: value for name, value in vars(bounds).items() if name.isupper()}
    assert figures == {
        "MAX_REASON_GIVEN": 10_000,
        "MAX_TRACE": 512,
        "MAX_IDENTIFIER": 256,
        "MAX_DEDUPE_KEY": 256,
        "MAX_PATH": 4096,
        "MAX_WORKING_DIRECTORY": 4096,
        "MAX_COMMAND": 1_048_576,
        "MAX_ENTRY": 32_768,
        "MAX_ITEMS": 1000,
        "MAX_TIMEOUT_SECONDS": 3600,
        "MAX_READ": 1_073_741_824,
        "MAX_WRITE": 104_857_600,
        "MAX_EDIT": 10_485_760,
        "MAX_TOKENS": 1_000_000,
        "HASH_BYTES": 32,
        "MAX_EXAMPLES": 50,
    }


@primitive(effects=["write"], paths={"path": "write"}, invariants=[excludes("create_only", "append")])
def store(
    path: parameter_types.FilePath,
    content: parameter_types.WriteContent,
    create_only: bool = False,
    append: bool = False,
    environment: parameter_types.Environment | None = None,
    key: parameter_types.DedupeKey = "",
) -> None:
    """Store it."""


def test_all_violations_are_reported_at_once() -> None:
    given = {
        "path": "../\0" + "a" * 5000,
        "create_only": True,
        "append": True,
        "environment": ["A=1", "B", "C=2=3"],
        "key": "k" * 300,
        "mode": 1,
    }
    found = violations(given, store.definition.schema)
    assert [(v["field"], v["rule"]) for v in found] == [
        ("content", "required"),
        ("path", "max_length"),
        ("path", "path_traversal"),
        ("path", "nul"),
        ("environment[1]", "one_equals"),
        ("environment[2]", "one_equals"),
        ("key", "max_length"),
        ("mode", "unknown"),
        ("append", "excludes"),
    ]
    assert found[-1]["message"] == "append: can't be given together with create_only"
    assert found[4]["message"] == "environment[1]: must be NAME=value with exactly one '=', has none"


@pytest.mark.parametrize("one", [{}, {"create_only": True}, {"append": True}, {"append": True, "create_only": False}])
def test_exactly_one_of_two_parameters_that_exclude_each_other(one: dict[str, bool]) -> None:
    assert violations({"path": "a", "content": "", **one}, store.definition.schema) == []


def test_invariants_are_in_the_schema_and_its_hash() -> None:
    schema = store.definition.parameters_schema()
    assert schema["x-excludes"] == [["create_only", "append"]]
    assert schema["not"]["required"] == ["create_only", "append"]
    loose = primitive(effects=["write"], name="store", paths={"path": "write"})(store.function)
    assert "not" not in loose.definition.parameters_schema()
    assert loose.definition.version != store.definition.version
    three = primitive(name="t", invariants=[excludes("a", "b", "c")])(of_three)
    assert len(three.definition.parameters_schema()["not"]["anyOf"]) == 3
    assert [v["message"] for v in violations({"a": 0, "b": "", "c": None}, three.definition.schema)] == [
        "b: can't be given together with a"
    ]


def of_three(a: Any = None, b: Any = None, c: Any = None) -> None: ...
def required(a: bool, b: bool = False) -> None: ...
def truthy(a: bool = True, b: bool = False) -> None: ...


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: primitive(invariants=[excludes("a", "z")])(of_three), "`invariants` names 'z', which is no parameter"),
        (lambda: primitive(invariants=[excludes("a")])(of_three), "needs two different parameters or more"),
        (lambda: primitive(invariants=[excludes("a", "a")])(of_three), "needs two different parameters or more"),
        (lambda: primitive(invariants=[excludes("a", "b")])(required), "its default must be False or None"),
        (lambda: primitive(invariants=[excludes("a", "b")])(truthy), "its default must be False or None"),
        (lambda: primitive(rate_limit=0)(of_three), "calls per hour, 1 or more, not 0"),
        (lambda: primitive(rate_limit=True)(of_three), "calls per hour, 1 or more, not True"),
    ],
)
def test_invalid_declarations(declare: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        declare()


def test_rules_do_not_change_the_version() -> None:
    plain = primitive(name="n")(of_three)
    bounded = primitive(name="n", rate_limit=60, sandbox=True)(of_three)
    assert bounded.definition.version == plain.definition.version
    assert bounded.definition.governance() == {
        **plain.definition.governance(),
        "rate_limit_per_hour": 60,
        "sandbox": True,
    }


def test_a_path_out_of_the_workspace_is_denied_and_an_empty_one_is_invalid() -> None:
    schema = store.definition.schema
    slip = refused_arguments(store.definition, violations({"path": ""}, schema))
    assert (slip.code, slip.rule, slip.denied) == ("invalid_arguments", None, False)
    leaving = refused_arguments(store.definition, violations({"path": "../x"}, schema))
    assert (leaving.code, leaving.rule, leaving.denied) == ("permission_denied", "path_traversal", True)
    assert [v["rule"] for v in leaving.details["violations"]] == ["required", "path_traversal"]


def test_annotated_types() -> None:
    assert schema_of(Annotated[str, "a remark"]) == {"type": "string"}
    assert schema_of(Annotated[int, Bound(minimum=1), Bound(maximum=2)]) == {
        "type": "integer",
        "minimum": 1,
        "maximum": 2,
    }
    from pydantic import Field

    assert schema_of(Annotated[int, Field(gt=3)]) == {"type": "integer", "exclusiveMinimum": 3}
    assert schema_of(Annotated[int, Field(gt=3), Bound(maximum=9)]) == {
        "type": "integer",
        "exclusiveMinimum": 3,
        "maximum": 9,
    }
    assert repr(Bound(minLength=1)) == "Bound(minLength=1)"


def test_violations_come_from_the_alternative_of_the_right_type() -> None:
    schema = schema_of(parameter_types.FilePath | None)
    assert violations(None, schema) == []
    assert [v["rule"] for v in violations("a/../b", schema)] == ["path_traversal"]
    assert [v["rule"] for v in violations(3, schema)] == ["type"]


def test_half_a_surrogate_pair_is_counted() -> None:
    assert rules("\ud800" * 4096, parameter_types.FilePath) == ["max_bytes"]
