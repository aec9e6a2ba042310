"""An argument is fixed if the program's text and its caller's arguments alone give it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.manifest import Hole, Value
from albert_tools.engine.policy.fixed_arguments import is_fixed, is_host_fixed
from tests.helpers.effort import examples

GIVEN: dict[str, Any] = {
    "to": "ada@example.org",
    "n": 7,
    "rows": [{"to": "bob"}, {"to": "eve"}],
    "host": "api.example.org",
    "path": "./docs//a b.txt",
    "many": [str(n) for n in range(1001)],
}
TO, N = Hole("parameter", "to"), Hole("parameter", "n")
EACH = Hole("parameter", "rows", path="[*].to")
BELOW = Hole("parameter", "rows", path="~")
WEB = Hole("any", data=("call:0",))
PATH = Hole("parameter", "path")
MANY = Hole("parameter", "many", path="[*]")
QUOTED = Hole("quoted", of=(EACH,))
CHOSEN = Value((("a",), ("b",)), data=("call:0",))


def text(*parts: str | Hole) -> Value:
    return Value((parts,))


@pytest.mark.parametrize(
    ("planned", "actual", "fixed"),
    [
        (text("a"), "a", True),
        (text("a"), "b", False),
        (text(TO), "ada@example.org", True),
        (text(TO), "eve@example.org", False),
        (text("<", TO, ">"), "<ada@example.org>", True),
        (text("<", TO, ">"), "<ada@example.org> ", False),
        (text("n", N), "n7", True),
        (text(N), 7, True),
        (text(N), "7", True),
        (text("in/", Hole("number"), ".txt"), "in/12.txt", True),
        (text("in/", Hole("number"), ".txt"), "in/x.txt", False),
        (Value((("in/", Hole("number")),), data=("call:0",)), "in/12", False),
        # Of a piece, nobody knows which one it is.
        (text(Hole("part", of=(TO,))), "ada", False),
        (text(Hole("joined", of=(",",), value=text(EACH))), "bob,eve", False),
        (text(Hole("name", of=(PATH,))), "a b.txt", True),
        (text(Hole("name", of=(PATH,))), "c", False),
        (text(Hole("path", of=(PATH, "/../c"))), "docs/c", True),
        (text("cat ", Hole("quoted", of=(PATH,))), "cat './docs//a b.txt'", True),
        (text("cat ", Hole("quoted", of=(PATH,))), "cat c", False),
        (text(EACH, EACH), "bobeve", True),
        (Value(((EACH, EACH),), data=("call:0",)), "bobeve", False),
        (Value(((EACH,),), data=("call:0",)), "bob", True),
        (Value((("a ", QUOTED),), data=("call:0",)), "a bob", True),
        (Value(((QUOTED, QUOTED),), data=("call:0",)), "bobeve", False),
        (text(EACH), "bob", True),
        (text(EACH), "mallory", False),
        (text(BELOW), "eve", True),
        (text(Hole("parameter", "rows")), GIVEN["rows"], True),
        (text(Hole("parameter", "gone")), "", False),
        # A hole that is not a parameter can be any text, also one that looks like a constant.
        (text(WEB), "a", False),
        (text("a", WEB), "a", False),
        (Value(((WEB,), ("a",))), "a", True),
        (Value((1,)), 1, True),
        (Value((1,)), True, False),
        (Value((None,)), None, True),
        (Value(open=True), "a", False),
        (Value(items=Value((("a",), (TO,)))), ["a", "ada@example.org"], True),
        (Value(items=Value((("a",), (WEB,)))), ["a", "b"], False),
        (Value(fields={"to": text(TO)}), {"to": "ada@example.org"}, True),
        (Value(fields={"to": text(TO)}), {"to": "ada@example.org", "cc": "eve"}, False),
        (Value(rest=text("x")), {"a": "x", "b": "x"}, True),
        # An output has chosen the names.
        (Value(rest=text("x"), data=("call:0",)), {"a": "x"}, False),
        (Value(fields={"a": text("x")}, data=("call:0",)), {"a": "x"}, True),
        (Value(items=text(WEB)), [], True),
        # An output chooses each item.
        (Value(items=CHOSEN), ["a", "b"], False),
        (Value(items=CHOSEN, places=(text("a"), CHOSEN)), ["a", "b"], True),
        (Value(items=CHOSEN, places=(CHOSEN, CHOSEN)), ["a", "b"], False),
        (Value(items=CHOSEN), [], True),
        (Value(rest=CHOSEN), {"x": "a"}, False),
        (Value(fields={"x": CHOSEN, "y": text("a")}), {"x": "a", "y": "a"}, True),
        (Value(fields={"x": CHOSEN, "y": CHOSEN}), {"x": "a", "y": "a"}, False),
        (text(Hole("path")), ".", False),
        (text(Hole("quoted", of=(MANY,))), "0", False),
    ],
)
def test_an_argument(planned: Value, actual: Any, fixed: bool) -> None:
    assert is_fixed(planned, actual, GIVEN) is fixed


HOST = Hole("parameter", "host")


@pytest.mark.parametrize(
    ("planned", "actual", "fixed"),
    [
        (text("https://example.org/", WEB), "https://example.org/a", True),
        (text("https://", HOST, "/", WEB), "https://api.example.org/a", True),
        (text("https://", HOST), "https://api.example.org", True),
        # Without a slash, the hole can make the host longer.
        (text("https://example.org", WEB), "https://example.org.evil.org/a", False),
        (text("https://example.org", WEB), "https://example.org/a", False),
        (text("https://", WEB, "/a"), "https://example.org/a", False),
        (text(WEB), "https://example.org/a", False),
        (text("https://example.org/", WEB), "https://evil.org/a", False),
        (text("https://example.org/", WEB), "example", False),
        (Value(items=text("https://example.org/", WEB)), ["https://example.org/a", "https://example.org/b"], True),
        (Value(items=text("https://example.org/", WEB)), ["https://example.org/a", "https://evil.org/b"], False),
        (Value((("https://", EACH, EACH, "/"),)), "https://bobeve/", True),
        (Value((("https://", EACH, EACH, "/"),), data=("call:0",)), "https://bobeve/", False),
    ],
)
def test_the_host_of_a_url(planned: Value, actual: str, fixed: bool) -> None:
    assert is_host_fixed(planned, actual, GIVEN) is fixed


TEXTS = st.text("ab/", max_size=4)


@examples(200)
@given(parts=st.lists(st.one_of(TEXTS, st.sampled_from([TO, N])), max_size=5), other=TEXTS)
def test_a_template_of_constants_and_arguments_fits_exactly_its_own_text(parts: list[Any], other: str) -> None:
    whole = "".join(part if isinstance(part, str) else str(GIVEN[part.name]) for part in parts)
    planned = text(*parts)
    assert is_fixed(planned, whole, GIVEN)
    assert is_fixed(planned, whole + other, GIVEN) is (not other)
