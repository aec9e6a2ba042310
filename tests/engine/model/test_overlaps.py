"""Which writes may feed a read of the same tool."""

from __future__ import annotations

import pytest

from albert_tools.engine.model.manifest import Hole, PlannedCall, Value
from albert_tools.engine.model.overlaps import fed_reads
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
        (text("a"), text("a/b.txt"), False),
        (text("a/x/../../b"), text("b"), True),
        (text(A), text("b.txt"), True),
        (text("out/", A), text("in/b"), True),
        (text("out/", NUMBER), text("in/b"), False),
        (text("out/", NUMBER), text("out/1"), True),
        (text(A, "/x"), text(A, "/y"), False),
        (text(A, "/x"), text(A, BELOW), True),
        (text(A), text(given("b")), True),
        (text("out", BELOW), text("in", BELOW), False),
        (Value(open=True), text("in"), True),
        (Value(alternatives=(("x",), ("in",))), text("in"), True),
    ],
)
def test_paths_that_may_be_the_same(written: Value, read: Value, fed: bool) -> None:
    assert (fed_reads(manifest(writes(written, text("")), reads(read))) == [(0, 1)]) is fed


def test_too_many_paths_are_not_compared() -> None:
    calls = [call for i in range(201) for call in (writes(text(f"out/{i}"), text("")), reads(text(f"in/{i}")))]
    assert fed_reads(manifest(*calls)) is None
    assert fed_reads(manifest(*calls[:100])) == []


def test_a_call_with_any_arguments_may_read_what_is_written() -> None:
    arguments = dict.fromkeys(("path", "*"), Value(open=True))
    call = PlannedCall("read_file", ("read",), arguments=arguments, uses={"path": "read"})
    assert fed_reads(manifest(writes(text("a"), text("")), call)) == [(0, 1)]
