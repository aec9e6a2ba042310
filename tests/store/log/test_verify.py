"""Verification finds and names every change that another program makes to a log, as far as the log can show it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from albert_tools.engine.model.failure import Failure
from albert_tools.store.log import line
from albert_tools.store.log.log import Log
from albert_tools.store.log.trouble import Problem
from albert_tools.store.log.verify import Verification


def _where(found: Verification) -> list[tuple[int | None, str]]:
    return [(p.n, p.kind) for p in found.problems]


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _chained(before: bytes, text: bytes) -> bytes:
    """Return a forged line for the place after the line `before`. It is made by somebody who knows the format."""
    return line.line(line.chain(line.split(before.rstrip(b"\n"))[0], text), text)


@pytest.fixture
def pristine(one: Path) -> bytes:
    """The original content of `one`."""
    return one.read_bytes()


def test_an_unchanged_log_is_valid(folder: Path, one: Path) -> None:
    found = Log(folder).verify()
    assert found.ok
    assert (found.segments, found.entries, found.notes) == (1, 7, ())
    assert "Without an anchor" in found.unseen
    assert "cut off" in found.unseen


def test_a_missing_log_is_valid(folder: Path) -> None:
    assert Log(folder).verify().ok
    assert not folder.exists()


@pytest.mark.parametrize("flip", [0x01, 0x20])
def test_every_flipped_byte_is_found_and_named(folder: Path, one: Path, flip: int) -> None:
    content = one.read_bytes()
    log = Log(folder)
    n = start = 0
    for i, byte in enumerate(content):
        one.write_bytes(content[:i] + bytes([byte ^ flip]) + content[i + 1 :])
        found = log.verify()
        first = found.problems[0]
        assert (first.segment, first.n, first.offset, first.kind) == (one.stem, n, start, "changed"), (
            f"byte {i}: {first}"
        )
        # A line that is split or joined with the next gives one more line without a valid hash. Any other change is one
        # problem.
        assert len(found.problems) == 1 or 0x0A in (byte, byte ^ flip)
        assert len(found.problems) <= 2
        with pytest.raises(Failure) as caught:
            list(log.entries())
        assert caught.value.code == "damaged"
        if byte == 0x0A:
            n, start = n + 1, i + 1
    one.write_bytes(content)
    assert log.verify().ok


@pytest.mark.parametrize("gone", range(7))
def test_a_removed_line_is_missed(folder: Path, one: Path, gone: int) -> None:
    lines = _lines(one)
    one.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    found = Log(folder).verify()
    assert _where(found) == [(gone + 1, "missing")]
    assert found.problems[0].offset == sum(map(len, lines[:gone]))


def test_several_removed_lines_are_one_problem(folder: Path, one: Path) -> None:
    lines = _lines(one)
    one.write_bytes(b"".join(lines[:2] + lines[5:]))
    (problem,) = Log(folder).verify().problems
    assert str(problem) == (
        f"segment {one.stem}, entry 5, byte {len(lines[0] + lines[1])}: "
        "entry 2 and what follows up to entry 4 are missing before it: removed or moved"
    )


@pytest.mark.parametrize("first", range(1, 7))
def test_swapped_lines_are_found(folder: Path, one: Path, first: int) -> None:
    lines = _lines(one)
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    one.write_bytes(b"".join(lines))
    found = _where(Log(folder).verify())
    assert found[0] == (first + 1, "missing")
    assert set(found[1:]) <= {(first, "inserted"), (first, "moved")}


@pytest.mark.parametrize("place", range(1, 8))
def test_an_inserted_line_is_found(folder: Path, one: Path, place: int) -> None:
    lines = _lines(one)
    forged = _chained(lines[place - 1], b'{"n":%d,"at":"2026-01-01T00:00:00.000000Z","kind":"step"}' % place)
    one.write_bytes(b"".join([*lines[:place], forged, *lines[place:]]))
    first = Log(folder).verify().problems[0]
    assert (first.n, first.offset) == (place, sum(map(len, lines[:place])))


@pytest.mark.parametrize("place", range(1, 8))
def test_a_repeated_line_is_found(folder: Path, one: Path, place: int) -> None:
    lines = _lines(one)
    one.write_bytes(b"".join([*lines[: place + 1], lines[place], *lines[place + 1 :]]))
    (problem,) = Log(folder).verify().problems
    assert (problem.kind, problem.offset) == ("inserted", sum(map(len, lines[: place + 1])))


def test_a_forged_line_with_the_same_number_and_its_own_hash_is_found(folder: Path, one: Path) -> None:
    lines = _lines(one)
    lines[3] = _chained(lines[2], line.split(lines[3].rstrip())[1].replace(b'"i":2', b'"i":9'))
    one.write_bytes(b"".join(lines))
    # The forged line follows its predecessor correctly. The next line shows that it isn't the original line.
    assert _where(Log(folder).verify()) == [(4, "changed")]


def test_text_after_the_end_is_found(folder: Path, one: Path) -> None:
    lines = _lines(one)
    one.write_bytes(
        b"".join([*lines, _chained(lines[-1], b'{"n":8,"at":"2099-01-01T00:00:00.000000Z","kind":"step"}')])
    )
    assert _where(Log(folder).verify()) == [(8, "inserted")]


def test_a_renamed_segment_is_found(folder: Path, one: Path) -> None:
    one.rename(one.with_name("20200101T000000.000000Z-1-00000000.log"))
    assert _where(Log(folder).verify()) == [(0, "header")]


def test_garbage_is_listed_up_to_a_limit_and_other_files_are_noted(folder: Path, one: Path) -> None:
    one.write_bytes(b"x\n" * 1000 + b"y" * 3_000_000)
    (folder / "notes.txt").write_text("hello")
    found = Log(folder).verify()
    assert len(found.problems) == 101
    assert found.problems[-1].kind == "more"
    assert [(p.segment, p.kind) for p in found.notes] == [("notes.txt", "strange")]


def test_a_folder_or_a_link_in_place_of_a_segment_is_found(folder: Path, one: Path) -> None:
    one.rename(folder / "elsewhere")
    one.symlink_to(folder / "elsewhere")
    assert _where(Log(folder).verify()) == [(None, "unreadable")]
    one.unlink()
    one.mkdir()
    assert _where(Log(folder).verify()) == [(None, "unreadable")]
    one.rmdir()
    os.mkfifo(one)
    assert _where(Log(folder).verify()) == [(None, "unreadable")]


@st.composite
def tampered(draw: st.DrawFn) -> list[tuple[float, float, float, bytes]]:
    """Edits of a file: remove a range, move it, or replace it."""
    part = st.floats(0, 1)
    return draw(st.lists(st.tuples(part, part, part, st.binary(max_size=3)), min_size=1, max_size=3))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=tampered(), by_line=st.booleans())
def test_every_edit_is_found(
    folder: Path, one: Path, pristine: bytes, edits: list[tuple[float, float, float, bytes]], by_line: bool
) -> None:
    one.write_bytes(pristine)
    log = Log(folder)
    anchor = log.anchor()
    whole = list(log.entries())
    pieces = pristine.splitlines(keepends=True) if by_line else [bytes([b]) for b in pristine]
    for start, length, target, more in edits:
        i = int(start * len(pieces))
        taken = pieces[i : i + int(length * (len(pieces) - i)) + 1]
        del pieces[i : i + len(taken)]
        k = int(target * len(pieces))
        pieces[k:k] = taken if not more else [more] if more != b"\x00" else []
    content = b"".join(pieces)
    one.write_bytes(content)
    found = log.verify()
    if content == pristine:
        assert found.ok
    else:
        # Only the removal of the end (within or between lines) is not found. It is found with an anchor.
        assert not found.ok or pristine.startswith(content[: content.rfind(b"\n") + 1])
        assert not log.verify(anchor).ok
    told: list[Problem] = []
    read = list(log.entries(on_damage=told.append))
    assert not (found.ok and told)
    assert read == whole[: len(read)]


# A torn tail is not tampering


@pytest.mark.parametrize("left", [1, 63, 64, 65, 66, 100, -1])
def test_a_torn_tail_is_noted_and_the_log_is_valid(folder: Path, one: Path, left: int) -> None:
    lines = _lines(one)
    one.write_bytes(b"".join(lines[:5]) + lines[5][:left])
    log = Log(folder)
    found = log.verify()
    assert found.ok
    assert [(p.kind, p.n, p.offset) for p in found.notes] == [("torn", 5, sum(map(len, lines[:5])))]
    assert "its writer ended in the middle" in found.notes[0].message
    assert [e.n for e in log.entries()] == [1, 2, 3, 4]
    log.append("after", {})
    assert [e.kind for e in log.entries()] == ["step"] * 4 + ["after"]


@pytest.mark.parametrize("left", [0, 30, 150])
def test_a_torn_header_is_noted_and_the_log_is_valid(folder: Path, one: Path, left: int) -> None:
    one.write_bytes(one.read_bytes()[:left])
    found = Log(folder).verify()
    assert found.ok
    assert [p.kind for p in found.notes] == ["torn"] * (left > 0)
    assert list(Log(folder).entries()) == []


# Anchors


def test_a_shortened_tail_is_found_only_with_an_anchor(folder: Path, one: Path) -> None:
    log = Log(folder)
    anchor = json.loads(json.dumps(log.anchor()))
    assert log.verify(anchor).ok
    one.write_bytes(b"".join(_lines(one)[:4]))
    assert log.verify().ok
    assert _where(log.verify(anchor)) == [(3, "shortened")]
    assert str(log.verify(anchor).problems[0]).endswith("it ends after entry 3, but had 7 when it was anchored")
    one.write_bytes(b"")
    assert _where(log.verify(anchor)) == [(-1, "shortened")]
    one.unlink()
    assert log.verify().ok
    assert _where(log.verify(anchor)) == [(None, "segment_missing")]


def test_a_rewritten_log_is_found_only_with_an_anchor(folder: Path, one: Path) -> None:
    log = Log(folder)
    anchor = log.anchor()
    forged = [_lines(one)[0]]
    for old in _lines(one)[1:]:
        forged.append(_chained(forged[-1], line.split(old.rstrip(b"\n"))[1].replace(b'"i":2', b'"i":9')))
    one.write_bytes(b"".join(forged))
    assert log.verify().ok
    assert _where(log.verify(anchor)) == [(7, "rewritten")]


def test_an_anchor_does_not_cover_later_entries(folder: Path, one: Path) -> None:
    with Log(folder) as log:
        log.append("a", {})
        anchor = log.anchor()
        for i in range(3):
            log.append("b", {"i": i})
        found = log.verify(anchor)
    assert found.ok
    assert f"after the anchor of {anchor['at']}" in found.unseen


def test_a_damaged_log_gives_no_anchor(folder: Path, one: Path) -> None:
    one.write_bytes(one.read_bytes().replace(b'"i":2', b'"i":3'))
    with pytest.raises(Failure, match="entry 3") as caught:
        Log(folder).anchor()
    assert caught.value.code == "damaged"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"format": 2, "at": "x", "segments": {}},
        {"format": 1, "at": "x", "segments": []},
        {"format": 1, "at": "x", "segments": {"../x": {"n": 1, "hash": "0" * 64}}},
        {"format": 1, "at": "x", "segments": {"20260101T000000.000000Z-1-00000000": {"n": "1", "hash": "0" * 64}}},
    ],
)
def test_an_invalid_anchor_is_refused(folder: Path, document: dict[str, object]) -> None:
    with pytest.raises(Failure) as caught:
        Log(folder).verify(document)
    assert caught.value.code == "invalid_arguments"


# Rotation


@pytest.fixture
def rotated(folder: Path, files: Callable[[], list[Path]]) -> list[Path]:
    """Three or more chained segments."""
    with Log(folder, rotate_at=900) as log:
        for i in range(12):
            log.append("step", {"i": i})
    assert len(files()) >= 3
    return files()


def test_a_rotated_log_reads_as_one_log_and_is_valid(folder: Path, rotated: list[Path]) -> None:
    log = Log(folder)
    assert [e.data["i"] for e in log.entries()] == list(range(12))
    found = log.verify()
    assert found.ok
    assert found.segments == len(rotated)
    assert all(path.stat().st_size < 1100 for path in rotated)


def test_a_missing_segment_of_a_chain_is_named_by_its_neighbours(folder: Path, rotated: list[Path]) -> None:
    rotated[1].unlink()
    problems = Log(folder).verify().problems
    assert [(p.segment, p.kind) for p in problems] == [
        (rotated[0].stem, "segment_missing"),
        (rotated[2].stem, "segment_missing"),
    ]
    assert all(rotated[1].stem in p.message for p in problems)


def test_a_shortened_segment_of_a_chain_is_found_by_the_next(folder: Path, rotated: list[Path]) -> None:
    rotated[0].write_bytes(b"".join(_lines(rotated[0])[:-2]))
    (problem,) = Log(folder).verify().problems
    assert (problem.segment, problem.kind) == (rotated[0].stem, "shortened")


def test_a_rewritten_segment_of_a_chain_does_not_match_the_next(folder: Path, rotated: list[Path]) -> None:
    forged = [_lines(rotated[0])[0]]
    for old in _lines(rotated[0])[1:]:
        forged.append(_chained(forged[-1], line.split(old.rstrip(b"\n"))[1].replace(b'"i":0', b'"i":9')))
    rotated[0].write_bytes(b"".join(forged))
    (problem,) = Log(folder).verify().problems
    assert (problem.segment, problem.kind) == (rotated[0].stem, "unchained")


def test_every_flipped_byte_of_a_chain_of_segments_is_found_in_its_segment(folder: Path, rotated: list[Path]) -> None:
    log = Log(folder)
    path = rotated[1]
    content = path.read_bytes()
    for i in range(len(content)):
        path.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        found = {(p.segment, p.n) for p in log.verify().problems}
        assert (path.stem, content[:i].count(b"\n")) in found, f"byte {i}"
