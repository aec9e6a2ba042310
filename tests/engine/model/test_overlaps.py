"""Which calls of a tool may show what other calls of it have changed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from albert_tools.engine.model.manifest import Hole, PlannedCall, Step, Value
from albert_tools.engine.model.overlaps import delays, feeds
from tests.helpers.manifests import given, manifest, reads, text, writes

A, BELOW, NUMBER = given("a"), Hole("below"), Hole("number")


@pytest.mark.parametrize(
    ("written", "read", "fed"),
    [
        (text("a.txt"), text("a.txt"), True),
        (text("a.txt"), text("./a.txt"), True),
        (text("a.txt"), text("b.txt"), False),
        (text("ab.txt"), text("a"), False),
        (text("a/b.txt"), text("a"), True),
        (text("a/b.txt"), text("."), True),
        (text("a"), text("a/b.txt"), True),
        (text("a/x/../../b"), text("b"), True),
        (text(A), text("b.txt"), True),
        (text("out/", A), text("in/b"), True),
        (text("out/", NUMBER), text("in/b"), False),
        (text("out/", NUMBER), text("out/1"), True),
        (text(A, "/x"), text(A, "/y"), False),
        (text(A, "/x"), text(A, BELOW), True),
        (text(A), text(given("b")), True),
        (text("out", BELOW), text("in", BELOW), False),
        # An absolute path may be in the workspace, and file systems may ignore the case and the form of letters.
        (text("/w/a"), text("a"), True),
        (text("/w/a"), text("/v/w/a"), True),
        (text("A\u0308.txt"), text("\xe4.TXT"), True),
        # What means nothing in a path, also beside what is not known.
        (text(A, "/./x"), text(A, "/x"), True),
        (text(A, "//x"), text(A, "/x"), True),
        (text(A, "/x/."), text(A, "/x"), True),
        (text(A, "x"), text(A, "/x"), True),
        (text(A, "./x"), text(A, "x"), True),
        (text(A, "/x/"), text(A, "/x"), True),
        (text("out/."), text("out/x"), True),
        (text("out/.", NUMBER), text("out/x"), True),
        (text(".//out/", NUMBER), text("out/1"), True),
        (text("out/"), text("outer/x"), False),
        (text("a", NUMBER), text("ab"), True),
        (text("ab"), text("a", NUMBER), True),
        (text("ab", NUMBER), text("a"), False),
        (Value(open=True), text("in"), True),
        # Null is the default, which is not known.
        (Value(alternatives=(None,)), text("in"), True),
        (Value(alternatives=(("x",), ("in",))), text("in"), True),
    ],
)
def test_paths_that_may_be_the_same(written: Value, read: Value, fed: bool) -> None:
    assert (feeds(manifest(writes(written, text("")), reads(read))) == [(0, 1)]) is fed


def test_among_too_many_paths_each_may_be_each() -> None:
    calls = [call for i in range(201) for call in (writes(text(f"out/{i}"), text("")), reads(text(f"in/{i}")))]
    assert len(feeds(manifest(*calls))) == 201 * 401
    assert feeds(manifest(*calls[:100])) == []


def call(
    effects: str, arguments: dict[str, Value] | None = None, uses: dict[str, str] | None = None, **more: Any
) -> PlannedCall:
    return PlannedCall("x", tuple(effects.split()), arguments=arguments or {}, uses=uses or {}, **more)


WRITE_A = writes(text("a"), text(""))
READ_A, READ_B = reads(text("a")), reads(text("b"))
PATH = {"path": "read"}


@pytest.mark.parametrize(
    ("one", "other", "fed"),
    [
        (WRITE_A, call("read", {"path": Value(open=True)}, PATH), True),
        # A path that is left to its default.
        (WRITE_A, call("read", {}, PATH), True),
        (WRITE_A, call("read"), True),
        (call("write"), READ_A, True),
        (call("delete", {"path": text("a")}, {"path": "delete"}), READ_A, True),
        (call("delete", {"path": text("a")}, {"path": "delete"}), READ_B, False),
        # A command reaches everything, whatever it names.
        (WRITE_A, call("read execute", {"cwd": text("b")}, {"cwd": "read"}), True),
        (call("read execute", {"cwd": text("b")}, {"cwd": "read"}), READ_A, True),
        # The output of a write tells what was there before.
        (WRITE_A, writes(text("a"), text("")), True),
        (WRITE_A, writes(text("b"), text("")), False),
        (WRITE_A, call("network", source="web"), False),
        (WRITE_A, call("secret"), False),
        (WRITE_A, call("read", source="clock"), False),
        (WRITE_A, call("read", source="random"), False),
        (READ_A, READ_A, False),
        (call("network"), READ_A, False),
    ],
)  # fmt: skip
def test_what_changes_and_what_shows(one: PlannedCall, other: PlannedCall, fed: bool) -> None:
    assert ((0, 1) in feeds(manifest(one, other))) is fed


@pytest.mark.parametrize(
    ("write", "read", "fed"),
    [
        ((), (), True),
        ((1,), (1,), True),
        ((2,), (1,), False),
        ((1,), (2,), True),
        ((2,), (1, 3), False),
        ((1, 2), (1,), True),
        ((1, 2), (1, 1), False),
        ((2,), (), True),
    ],
)
def test_a_call_that_is_certainly_made_before_shows_nothing(write: Step, read: Step, fed: bool) -> None:
    calls = replace(WRITE_A, step=write), replace(READ_A, step=read)
    assert (feeds(manifest(*calls)) == [(0, 1)]) is fed


@pytest.mark.parametrize(
    ("source", "has_times", "is_clock"),
    [
        ("clock", False, True),
        ("command", False, True),
        ("web", False, True),
        ("file", False, False),
        ("file", True, True),
        ("", False, False),
        ("random", False, False),
    ],
)
def test_what_shows_how_long_earlier_calls_have_taken(source: str, has_times: bool, is_clock: bool) -> None:
    slow, clock = call("", step=(1,)), call("", source=source, has_times=has_times, step=(2,))
    assert delays(manifest(slow, clock)) == ([(0, 1)] if is_clock else [])
    assert delays(manifest(replace(slow, step=(3,)), clock)) == []


def test_links_make_all_paths_one() -> None:
    assert feeds(manifest(WRITE_A, READ_B)) == []
    assert feeds(manifest(WRITE_A, READ_B), by_links=True) == [(0, 1)]
    assert feeds(manifest(replace(WRITE_A, step=(2,)), replace(READ_B, step=(1,))), by_links=True) == []
