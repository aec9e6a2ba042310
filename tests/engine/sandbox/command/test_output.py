"""Output is shown in a bounded number of bytes, without changing any character."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from albert_tools.engine.sandbox.command.output import Output, Shown, shown_together
from tests.helpers.effort import examples

ROOM = 200


def output(*pieces: bytes) -> Output:
    made = Output(ROOM, 10 * ROOM)
    for piece in pieces:
        made.add(piece)
    return made


def check(shown: Shown, data: bytes, room: int) -> None:
    """The text fits, and is the whole text, or its beginning and its end with the number of the bytes between them."""
    assert len(shown.text.encode()) <= room
    whole = data.decode("utf-8", "replace")
    if not shown.omitted:
        assert shown.text == whole
        return
    head, tail = shown.text.split(f"\n[… {shown.omitted} bytes left out …]\n")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    if "\ufffd" not in whole:
        assert len((head + tail).encode()) + shown.omitted == len(data)


@examples(100)
@given(st.lists(st.text(max_size=150).map(str.encode) | st.binary(max_size=150), max_size=8), st.integers(80, ROOM))
@example(["00𐀀".encode() * 12, b"\x80\0\0\0\0"], 112)
@example(["é𐀀".encode() * 20, b"\x80\xbf"], 91)
def test_any_output_is_shown_in_the_room(pieces: list[bytes], room: int) -> None:
    check(output(*pieces).shown(room), b"".join(pieces), room)


@examples(100)
@given(st.text(max_size=400).map(str.encode), st.text(max_size=400).map(str.encode))
def test_two_outputs_share_the_room(one: bytes, other: bytes) -> None:
    first, second = shown_together(output(one), output(other), ROOM)
    check(first, one, ROOM)
    check(second, other, ROOM)
    assert len((first.text + second.text).encode()) <= ROOM
    if len(one) + len(other) <= ROOM:
        assert (first.omitted, second.omitted) == (0, 0)
    if len(other) <= ROOM // 2:
        assert second.omitted == 0


@pytest.mark.parametrize(("data", "omitted"), [(b"x" * ROOM, 0), (b"x" * (ROOM + 1), 65), (b"\xff" * 100, 56)])
def test_the_limit_includes_the_line_about_what_is_missing(data: bytes, omitted: int) -> None:
    shown = output(data).shown(ROOM)
    assert shown.omitted == omitted
    assert bool(re.search(r"\n\[… \d+ bytes left out …\]\n", shown.text)) == (omitted > 0)
