"""Definitions in words, for lists and pages."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import pytest

from albert_tools import primitive
from albert_tools.engine.model.describe import bounds_of, data_of, example_of, resources_of, timeout_of
from albert_tools.engine.model.parameter_types import Hash
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.validation import violations
from albert_tools.testing import registry


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string"}, ""),
        ({"type": "string", "minLength": 1, "maxLength": 4096}, "1 to 4,096 characters"),
        ({"type": "string", "maxLength": 1}, "at most 1 character"),
        ({"type": "string", "minLength": 0, "maxLength": 9}, "at most 9 characters"),
        ({"type": "string", "minLength": 2}, "at least 2 characters"),
        ({"type": "string", "minLength": 64, "maxLength": 64}, "exactly 64 characters"),
        ({"type": "string", "pattern": "^a+$"}, "of the form ^a+$"),
        ({"type": "integer", "minimum": 0}, "at least 0"),
        ({"type": "number", "minimum": 0, "maximum": 0.5}, "0 to 0.5"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 600}, "more than 0, at most 600"),
        ({"type": "number", "exclusiveMaximum": 1}, "less than 1"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 1000}, "at most 1,000 items"),
        (
            {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1},
            "at least 1 item, each at most 5 characters",
        ),
        ({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 3}]}, "at least 3"),
    ],
)
def test_bounds(schema: dict[str, Any], said: str) -> None:
    assert bounds_of(schema) == said


def test_examples_come_from_the_descriptions() -> None:
    @primitive(schemas={"count": {"minimum": 5}, "share": {"maximum": 0.5}})
    def made(
        path: str,
        count: int,
        share: float,
        kind: Literal["a", "b"],
        names: list[str],
        ref: Hash,
        rows: list[int],
        table: dict[str, int],
        sure: bool,
        perhaps: str | None,
        later: int = 3,
    ) -> None:
        """Make.

        Args:
            path: What to read, for example "notes/a
                b.md".
            names: Who, for example "Ada".
        """

    assert example_of(made.definition) == {
        "path": "notes/a b.md",
        "count": 5,
        "share": 0.5,
        "kind": "a",
        "names": ["Ada"],
        "ref": "b3:" + "0" * 64,
        "rows": [],
        "table": {},
        "sure": True,
        "perhaps": "text",
    }


@pytest.mark.parametrize("tool", registry().primitives(), ids=lambda p: p.name)
def test_an_example_of_each_tool_is_a_valid_call(tool: Primitive) -> None:
    assert violations(example_of(tool.definition), tool.definition.schema) == []


def test_the_resources_that_rules_judge() -> None:
    @primitive(
        effects=["network", "execute"],
        paths={"source": "read", "target": "write"},
        urls={"url": "method", "mirror": ""},
        judged={"command": "shell", "operation": "operation"},
    )
    def fetch(source: str, target: str, url: str, method: str, mirror: str, command: str, operation: str) -> None: ...

    assert resources_of(fetch) == {
        "source": "path to read",
        "target": "path to write",
        "url": "URL, with the method that `method` says",
        "mirror": "URL",
        "method": "operation",
        "command": "shell command",
        "operation": "operation",
    }


class Sent(TypedDict):
    path: str
    to: str
    size: int


def test_what_a_primitive_declares_about_its_data() -> None:
    @primitive(
        effects=["write"],
        paths={"folder": "write"},
        uses={"to": "destination", "text": "payload", "title": "payload"},
        outputs={"": "at most 2000 items", "[*].path": "below folder", "[*].to": "same as to", "[*].size": "little"},
        source="mail",
    )
    def send(folder: str, to: str, text: str, title: str) -> list[Sent]: ...

    @primitive
    def silent() -> str: ...

    assert data_of(send.definition) == (
        "`to` is a destination. `text` and `title` are payloads. The output comes from mail. "
        "The output has at most 2,000 items. In the output, `[*].path` is below the argument `folder`, "
        "`[*].to` is the argument `to`, `[*].size` carries little."
    )
    assert data_of(silent.definition) == ""


def test_times() -> None:
    assert [timeout_of(s) for s in (0.5, 30, 65, 90, 120, 600, 601)] == [
        "0.5 s",
        "30 s",
        "65 s",
        "90 s",
        "2 min",
        "10 min",
        "601 s",
    ]
