"""Declaring primitives: the definition that a function gives, and the declarations that are refused."""

from __future__ import annotations

import asyncio
import enum
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest

from albert_tools import CallContext, Primitive, primitive
from albert_tools.engine.model.primitive import call_primitive, read_docstring
from albert_tools.engine.model.validation import violations


class Row(TypedDict, total=False):
    name: str
    size: int


def test_the_function_gives_the_definition() -> None:
    @primitive(effects=["read"], family="data", timeout=5, idempotent=True, schemas={"limit": {"minimum": 1}})
    async def query(
        text: str, context: CallContext, limit: int = 10, kind: Literal["a", "b"] | None = None
    ) -> list[Row]:
        """Ask the database.

        In plain words.

        Args:
            text: What to
                ask for.
            limit (int): Rows at the most.

        Returns:
            The rows.
        """
        return []

    assert isinstance(query, Primitive)
    d = query.definition
    assert d.signature() == (
        'query(text: str, limit: int = 10, kind: Literal["a", "b"] | None = None) -> list[{name?: str, size?: int}]'
    )
    assert d.description == "Ask the database.\n\nIn plain words."
    assert [p.description for p in d.parameters] == ["What to ask for.", "Rows at the most.", ""]
    assert (d.effects, d.family, d.timeout, d.depth, d.kind) == (("read",), "data", 5, 0, "primitive")
    assert d.parameters_schema()["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "description": "Rows at the most.",
        "default": 10,
    }
    assert (query.context, query.is_async, query.gated, query.name) == ("context", True, False, "query")
    assert d.parameter("limit") is d.parameters[1]
    assert d.parameter("context") is None


def test_the_version_depends_on_the_schema_only() -> None:
    def plain(a: int) -> int:
        """One text."""
        return a

    def again(a: int) -> int:
        """Another text."""
        return a + 1

    def wider(a: int, b: int = 0) -> int:
        return a

    made = [primitive(name="n")(f).definition.version for f in (plain, again, wider)]
    assert made[0] == made[1]
    assert made[0] != made[2]
    assert primitive(name="n", effects=["read"])(plain).definition.version != made[0]


def test_bare_decorator_and_default_family() -> None:
    @primitive
    def now() -> float:
        """Tell the time."""
        return 1.0

    assert now.definition.effects == ()
    assert now.definition.family == __name__.rpartition(".")[2]


@dataclass
class Tree:
    name: str
    below: list[Tree]


def test_a_recursive_type_uses_its_own_definitions() -> None:
    @primitive
    def plant(tree: Tree, other: Tree | None = None) -> None:
        """Plant it."""

    leaf = {"name": "b", "below": []}
    schema = plant.definition.schema
    assert violations({"tree": {"name": "a", "below": [leaf]}, "other": None}, schema) == []
    found = violations({"tree": {"name": "a", "below": [leaf, {"name": 1, "below": []}]}, "other": leaf}, schema)
    assert [(v["field"], v["rule"]) for v in found] == [("tree.below[1].name", "type")]


class Colour(enum.Enum):
    RED = 1


class Opaque:
    pass


def a_unknown(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def a_path(x: Path = Path(".")) -> None: ...
def a_enum(x: Colour = Colour.RED) -> None: ...
def a_nan(x: float = float("nan")) -> None: ...
def a_broken(x: int = 5.5) -> None: ...  # type: ignore[assignment]
def a_opaque(x: Opaque) -> None: ...
def a_result() -> Opaque: ...  # type: ignore[empty-body]
def a_bare(x) -> None: ...  # type: ignore[no-untyped-def]
def a_star(*x: int) -> None: ...
def a_stars(**x: int) -> None: ...
def a_only(x: int, /) -> None: ...
def a_fine(x: int = 1) -> None: ...
def a_yielding() -> Any:
    yield 1


async def a_yielding_later() -> Any:
    yield 1


async def one_argument(arguments: Any) -> str:
    return ""


def yielding(arguments: Any, settings: Any, network: Any) -> Iterator[None]:
    yield


class Awaited:
    async def __call__(self, arguments: Any) -> None: ...


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: primitive(3), "decorates a function, not 3"),  # type: ignore[call-overload]
        (lambda: primitive(lambda: 1), "'<lambda>' can't be a tool's name"),
        (lambda: primitive(name="a b")(a_fine), "'a b' can't be a tool's name: use letters, digits and _"),
        (lambda: primitive(name="class")(a_fine), "no keyword"),
        (lambda: primitive(effects=["reed"])(a_fine), "unknown effect 'reed'; use one of read, write"),  # type: ignore[list-item]
        (lambda: primitive(timeout=0)(a_fine), "the timeout is a number of seconds, above 0 and at most 3600, not 0"),
        (lambda: primitive(timeout=math.inf)(a_fine), "above 0 and at most 3600, not inf"),
        (lambda: primitive(schemas={"y": {}})(a_fine), "`schemas` names 'y', which is no parameter"),
        (
            lambda: primitive(schemas={"x": {"type": 5}})(a_fine),
            "`schemas` of 'x' is not a valid schema: 'type' can't be 5",
        ),
        (lambda: primitive(schemas={"x": {"type": "text"}})(a_fine), "'type' can't be 'text'"),
        (lambda: primitive(schemas={"x": {"pattern": "("}})(a_fine), "'pattern' can't be '('"),
        (lambda: primitive(schemas={"x": {"minimum": "1"}})(a_fine), "'minimum' can't be '1'"),
        (lambda: primitive(schemas={"x": {"maxLength": -1}})(a_fine), "'maxLength' can't be -1"),
        (lambda: primitive(schemas={"x": {"items": {"enum": 3}}})(a_fine), "'enum' can't be 3"),
        (lambda: primitive(schemas={"x": {"anyOf": [7]}})(a_fine), "a schema is a dict, not 7"),
        (lambda: primitive(schemas={"x": {"properties": {"a": {"required": "a"}}}})(a_fine), "'required' can't be 'a'"),
        (lambda: primitive(urls=["x"])(a_fine), "`urls` must be a dict whose keys are names of parameters or fields"),  # type: ignore[arg-type]
        (lambda: primitive(once=["y"])(a_fine), "`once` names 'y', which is no parameter"),
        (lambda: primitive(a_unknown), "its annotations can't be read: name 'Nowhere'"),
        (lambda: primitive(a_path), "the default of 'x' is not JSON"),
        (lambda: primitive(a_enum), "the default of 'x' is not JSON"),
        (lambda: primitive(a_nan), "the default of 'x' is not JSON, nan"),
        (lambda: primitive(a_broken), "breaks its own schema: x: expected int, got float 5.5"),
        (lambda: primitive(a_opaque), "no JSON Schema for the type of parameter 'x'"),
        (lambda: primitive(a_result), "no JSON Schema for the type of the result"),
        (lambda: primitive(a_bare), "parameter 'x' needs an annotation"),
        (lambda: primitive(a_star), "'x' must be an ordinary named parameter"),
        (lambda: primitive(a_stars), "'x' must be an ordinary named parameter"),
        (lambda: primitive(a_only), "'x' must be an ordinary named parameter"),
        (lambda: primitive(preview=lambda context, arguments: "")(a_fine), "`preview` must be an `async def`"),  # type: ignore[arg-type, return-value]
        (lambda: primitive(preview=one_argument)(a_fine), "`preview` must take the context and the arguments"),  # type: ignore[arg-type]
        (lambda: primitive(preview="text")(a_fine), "`preview` must be a function, not 'text'"),  # type: ignore[arg-type]
        (lambda: primitive(settings=5)(a_fine), "`settings` must be a function, or a dict with the schema of each"),  # type: ignore[arg-type]
        (lambda: primitive(settings={"x": 5})(a_fine), "the setting 'x': a schema is a dict, not 5"),  # type: ignore[dict-item]
        (
            lambda: primitive(settings={"x": {"maximun": 3}})(a_fine),
            "the setting 'x': the keyword 'maximun' is not supported",
        ),
        (lambda: primitive(refuse=one_argument)(a_fine), "`refuse` must be an ordinary `def`"),
        (lambda: primitive(refuse=Awaited())(a_fine), "`refuse` must be an ordinary `def`"),
        (lambda: primitive(refuse=lambda: None)(a_fine), "`refuse` must take the arguments"),  # type: ignore[arg-type, misc]
        (lambda: primitive(deny=lambda given: None)(a_fine), "`deny` must take the arguments and the settings and"),  # type: ignore[arg-type, misc]
        (lambda: primitive(deny=yielding)(a_fine), "`deny` must not yield values"),
        (lambda: primitive(settle=lambda: None)(a_fine), "`settle` must take the call"),  # type: ignore[arg-type, misc]
        (lambda: primitive(settings=one_argument)(a_fine), "`settings` must be an ordinary `def`"),  # type: ignore[arg-type]
        (lambda: primitive(a_yielding), "it yields values; return all of them"),
        (lambda: primitive(a_yielding_later), "it yields values; return all of them"),
    ],
)
def test_invalid_primitives(declare: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        declare()
    assert said in str(caught.value)


def test_callbacks_of_the_right_kind_are_accepted() -> None:
    async def preview(label: str, context: CallContext, arguments: Any) -> str:
        return label

    async def settle(call: Any) -> Any: ...

    made = primitive(preview=partial(preview, "it"), refuse=print, settle=settle, settings=lambda given: [])(a_fine)
    assert made.name == "a_fine"


def test_none_as_a_default_means_not_given() -> None:
    @primitive
    def find(x: int = None) -> int:  # type: ignore[assignment]  # noqa: RUF013
        """Find."""
        return x

    assert find.definition.signature() == "find(x: int = None) -> int"


def test_docstring_sections() -> None:
    assert read_docstring("") == ("", {})
    text = "One.\n\nArgs:\n    a: First\n      goes on.\n\n    b (int): Second.\nNote:\n    c: Not one."
    assert read_docstring(text) == ("One.", {"a": "First goes on.", "b": "Second."})
    # A heading is at the left margin. A line before the first entry belongs to no entry.
    assert read_docstring("One.\n  Args:") == ("One.\n  Args:", {})
    assert read_docstring("One.\n\nArgs:\n stray\n    a: A.") == ("One.", {"a": "A."})


def test_a_sync_function_runs_in_a_thread_and_its_stop_iteration_arrives() -> None:
    import threading

    @primitive
    def where() -> str:
        """Say the thread."""
        return threading.current_thread().name

    @primitive
    def empty() -> int:
        """Take the first of nothing."""
        return next(iter([]))

    async def main() -> str:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(call_primitive(empty, {}, None), 5)  # type: ignore[arg-type]
        return await call_primitive(where, {}, None)  # type: ignore[arg-type]

    assert asyncio.run(main()) != threading.current_thread().name
