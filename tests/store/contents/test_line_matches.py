"""Searching the lines of a large value, in bounded memory and linear time."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Line
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.line_matches import MAX_LINE, matching

TEXT = "first line\nsecond\n\nthe ä line\nlast line without an end"


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    return Contents(tmp_path / "contents")


def test_matching_lines_have_offsets(contents: Contents) -> None:
    ref = contents.put(TEXT.encode())
    found = contents.matching(ref, "line")
    assert [line.text for line in found.lines] == ["first line", "the ä line", "last line without an end"]
    assert found.next_offset is None
    for line in found.lines:
        assert contents.slice(ref, line.offset, len(line.text.encode())) == line.text.encode()
    assert contents.matching(ref, "line", offset=1).lines == found.lines[1:]
    assert contents.matching(ref, "nowhere").lines == []


def test_a_search_continues_at_the_next_offset(contents: Contents) -> None:
    ref = contents.put(TEXT.encode())
    everything = contents.matching(ref, "line").lines
    found: list[Line] = []
    offset: int | None = 0
    while offset is not None:
        lines, offset = contents.matching(ref, "line", offset, 1)
        assert len(lines) == 1
        found += lines
    assert found == everything


def test_a_damaged_value_is_not_searched(contents: Contents) -> None:
    ref = contents.put(TEXT.encode())
    next(contents.folder.glob("*/[!.]*")).write_bytes(TEXT.encode().replace(b"first", b"worst"))
    with pytest.raises(Failure) as caught:
        contents.matching(ref, "line")
    assert caught.value.code == "damaged"


@given(
    text=st.text("ab\n", max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    offset=st.integers(0, 20),
)
def test_the_block_size_does_not_change_the_matches(text: str, cuts: list[int], offset: int) -> None:
    content = text.encode()
    bounds = sorted({0, len(content), *(c for c in cuts if c < len(content))})
    blocks = [content[a:b] for a, b in itertools.pairwise(bounds)]
    expected, position = [], 0
    for line in text.split("\n"):
        if "ab" in line and position >= offset:
            expected.append(Line(position, line))
        position += len(line) + 1
    assert matching(blocks, lambda t: "ab" in t, offset, 1000).lines == expected


def test_a_very_long_line_is_matched_in_pieces(contents: Contents) -> None:
    ref = contents.put(b"x" * (3 * MAX_LINE) + b"needle" + b"y" * 10)
    (line,) = contents.matching(ref, "needle").lines
    assert line == Line(3 * MAX_LINE, "needle" + "y" * 10)


def test_an_invalid_pattern_is_refused(contents: Contents) -> None:
    ref = contents.put(TEXT.encode())
    for pattern in ("(", "x" * 1001, r"(a)\1"):
        with pytest.raises(Failure) as caught:
            contents.matching(ref, pattern)
        assert caught.value.code == "invalid_arguments"


def test_time_is_linear_for_any_pattern(contents: Contents) -> None:
    ref = contents.put(b"a" * 50_000 + b"!\nsecond 42\n")
    assert contents.matching(ref, "(a+)+$").lines == []
    assert [line.text for line in contents.matching(ref, r"^s\w+ \d{2}$").lines] == ["second 42"]
