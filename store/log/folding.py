"""Letting go of what is old: many finished segments become one, with what is still to be known.

A *folded* segment is written like any other, chained from its header on. First in it stand records of what it takes the place
of: for each segment its last entry's number and hash, and which one continued it, so that later segments and anchors can still be
held against them. Then come the entries that were kept, with their times. What was dropped is gone, and `verify` says so.

The switch is one rename. Before it a marker in the folder says what the new segment takes the place of; from the rename on these
count as gone, and then they are deleted, and the marker last. Where a process was killed in between, whoever folds next goes back
if the rename wasn't reached, and forward if it was. Who lists the folder holds a shared lock while it does, and who switches the
exclusive one, so that no listing has half of each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from albert_tools.engine.model.record_types import Entry
from albert_tools.store.locks import lock
from albert_tools.store.log import line
from albert_tools.store.log.fold_records import Record, recorded
from albert_tools.store.log.lines import last_line
from albert_tools.store.log.reader import SegmentReader
from albert_tools.store.log.segment import (
    FILE_MODE,
    MARKER,
    NEW_FOLD,
    SWITCH,
    TURN,
    alive,
    begun,
    folded_name,
    is_folded,
    open_segment,
    path_of,
    segments,
    superseded,
)
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import sync_folder
from albert_tools.store.private_folder import check_private

#: Seconds to wait for those who list, or prove, the log; and for another who folds.
PATIENCE = 60.0
#: Segments that one record names: it stays well within the size of an entry.
RECORDED_AT_ONCE = 1000

#: What is kept of the entries that are folded, in order: each with its time, kind and data.
Condense = Callable[[Iterable[Entry]], Iterable[tuple[str, str, Mapping[str, Any]]]]


class Folded(NamedTuple):
    """What a fold came to: `segments` that were folded, their `entries`, how many were `kept`; bytes `before` and `after`."""

    segments: int = 0
    entries: int = 0
    kept: int = 0
    before: int = 0
    after: int = 0


def fold(folder: Path, until: str, condense: Condense) -> Folded:
    """Fold all segments that are finished and have nothing from `until` (ISO 8601, UTC) on into one.

    Raises:
        Failure: `damaged`: one can't be proved, and nothing is folded; `io_error`, retryable while another process folds.
    """
    try:
        if not check_private(folder, "the log"):
            return Folded()
        with _held(folder / TURN, "another process is folding the log"):
            _finish(folder)
            return _fold(folder, until, condense)
    except OSError as error:
        raise io_failure("fold the log in", folder, error) from error


def _fold(folder: Path, until: str, condense: Condense) -> Folded:
    sources = [name for name in segments(folder)[0] if is_folded(name) or _over(folder, name, until)]
    if all(is_folded(name) for name in sources):
        return Folded()
    records: dict[str, Record] = {}
    found: list[Entry] = []
    before = 0
    for name in sources:
        records |= recorded(folder, name)
        reader = SegmentReader(folder, name)
        found += reader.entries(None)
        before += max(0, reader.place.size)
        records[name] = Record(max(-1, reader.place.n), reader.place.hash, _following(folder, name))
    found.sort(key=lambda entry: entry[:3])
    name = folded_name(min(begun(source) for source in sources))
    temporary = folder / f"{NEW_FOLD}{name}"
    try:
        kept, after = _write(temporary, name, records, condense(found))
        _switch(folder, name, temporary, sources)
    except BaseException:
        with suppress(OSError):
            if not os.path.lexists(folder / MARKER):
                os.unlink(temporary)
        raise
    return Folded(len(sources), len(found), kept, before, after)


def _over(folder: Path, name: str, until: str) -> bool:
    """Whether a segment has no writer any more and nothing as new as `until`."""
    if begun(name) >= until:
        return False
    handle = open_segment(folder, name)
    try:
        if alive(handle):
            return False
        last = last_line(handle, os.fstat(handle).st_size)
        if last is None:
            return True
        with suppress(line.Malformed):
            at = line.fields(line.split(last)[1]).get("at", "")
            return isinstance(at, str) and at < until
        return True  # it can't be proved, and that is said when it is read
    finally:
        os.close(handle)


def _following(folder: Path, name: str) -> str | None:
    handle = open_segment(folder, name)
    try:
        last = last_line(handle, os.fstat(handle).st_size)
    finally:
        os.close(handle)
    with suppress(line.Malformed):
        fields = {} if last is None else line.fields(line.split(last)[1])
        following = fields.get("next") if fields.get("kind") == line.CLOSED else None
        return following if isinstance(following, str) else None
    return None


def _write(
    path: Path, name: str, records: Mapping[str, Record], kept: Iterable[tuple[str, str, Mapping[str, Any]]]
) -> tuple[int, int]:
    """The new segment, durably, under another name; how many entries it keeps, and its bytes."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    with open(handle, "wb") as file:
        digest, n, count, at = line.NOTHING, -1, 0, begun(name)

        def add(text: bytes) -> None:
            nonlocal digest, n
            digest, n = line.chain(digest, text), n + 1
            file.write(line.line(digest, text))

        add(line.header(name, begun(name), 0, None, None))
        listed = sorted(records.items())
        for i in range(0, len(listed), RECORDED_AT_ONCE):
            add(line.stamped(n + 1, at, line.folding(dict(listed[i : i + RECORDED_AT_ONCE]))))
        for at, kind, data in kept:
            add(line.stamped(n + 1, at, line.body(kind, data)))
            count += 1
        add(line.stamped(n + 1, at, line.closing(None)))
        file.flush()
        os.fsync(handle)
        return count, file.tell()


def _switch(folder: Path, name: str, temporary: Path, sources: list[str]) -> None:
    with _held(folder / SWITCH, "other processes are reading the log"):
        with open(
            os.open(folder / f"{NEW_FOLD}marker", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb"
        ) as file:
            file.write(msgspec.json.encode({"into": name, "segments": sources}))
            file.flush()
            os.fsync(file.fileno())
        os.rename(folder / f"{NEW_FOLD}marker", folder / MARKER)
        sync_folder(folder)
        os.rename(temporary, path_of(folder, name))
        sync_folder(folder)
        _finish_switch(folder)


def _finish(folder: Path) -> None:
    """Undo, or finish, what a process that died was at. The turn must be held."""
    if os.path.lexists(folder / MARKER):
        with _held(folder / SWITCH, "other processes are reading the log"):
            _finish_switch(folder)
    for left in os.listdir(folder):
        if left.startswith(NEW_FOLD):
            os.unlink(folder / left)


def _finish_switch(folder: Path) -> None:
    for gone in superseded(folder):
        with suppress(FileNotFoundError):
            os.unlink(path_of(folder, gone))
    sync_folder(folder)
    os.unlink(folder / MARKER)
    sync_folder(folder)


@contextmanager
def _held(path: Path, who: str) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        lock(handle, path, PATIENCE, f"{who}: {path} is locked", "try again when it has finished")
        yield
    finally:
        os.close(handle)
