"""The reading half: every segment line by line, each line proved before it is handed on.

What is read decides what is allowed (an approval, a limit, a result that need not be computed again), so a line that
is not what was written stops the reading with a failure that names it. A torn last line is no entry yet, or never will
be one; both are passed over.

`entries` merges all segments by time and holds one line of each that is open at once: a segment is opened when the merge reaches
the time in its name and closed at its end. `changes` goes on where a cursor stands, and costs one `stat` for
each segment that hasn't grown.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.records import Cursor, Entry, Place
from albert_tools.store.log import line
from albert_tools.store.log.clock import text_of
from albert_tools.store.log.segment import begun, open_segment, path_of, segments
from albert_tools.store.log.trouble import Problem, damaged
from albert_tools.store.private import check_private
from albert_tools.store.trouble import io_failure

#: Bytes read at once.
BLOCK = 256 * 1024
#: Bytes looked at first for a segment's last line.
GLANCE = 4096

OnDamage = Callable[[Problem], None]


def lines(handle: int, offset: int = 0) -> Iterator[tuple[int, bytes, bool]]:
    """The lines from `offset` on, as (offset, content without newline, whether it ended with one).

    One that is far too long comes in pieces, each too long to be a line.
    """
    rest = b""
    position = offset
    while block := os.pread(handle, BLOCK, position):
        position += len(block)
        pieces = (rest + block).split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            yield offset, piece, True
            offset += len(piece) + 1
        if len(rest) > line.MAX_LINE:
            yield offset, rest, True
            offset, rest = position, b""
    if rest:
        yield offset, rest, False


class SegmentReader:
    """Reads one segment from `place` on; when all is read, `place` is the end."""

    def __init__(self, folder: Path, segment: str, place: Place = Place()) -> None:  # noqa: B008 - immutable
        self.folder = folder
        self.segment = segment
        self.place = place

    def entries(self, kinds: Collection[str] | None, since: str = "") -> Iterator[Entry]:
        """The entries of these kinds from `since` on, the log's own left out.

        Raises:
            Failure: `damaged`, `io_error`.
        """
        try:
            handle = open_segment(self.folder, self.segment)
        except FileNotFoundError:
            raise damaged(self.folder, gone(self.segment)) from None
        except OSError as error:
            raise io_failure("read the log's segment", path_of(self.folder, self.segment), error) from error
        try:
            size = os.fstat(handle).st_size
            if size < self.place.offset:
                raise damaged(self.folder, self._problem(size, "shortened", "the segment is shorter than it was"))
            if since and _ended_before(handle, size, since):
                return
            yield from self._entries(handle, size, kinds, since)
        except OSError as error:
            raise io_failure("read the log's segment", path_of(self.folder, self.segment), error) from error
        finally:
            os.close(handle)

    def _entries(self, handle: int, size: int, kinds: Collection[str] | None, since: str) -> Iterator[Entry]:
        end, n, digest = self.place.offset, self.place.n, bytes.fromhex(self.place.hash)
        for offset, content, whole in lines(handle, end):
            if not whole:
                if line.overwritten(content, (digest,)):
                    message = "its line ending was changed"
                    raise damaged(self.folder, Problem(self.segment, n + 1, offset, "changed", message))
                break
            try:
                stated, text = line.proved(digest, content)
                entry = _entry(self.segment, n + 1, line.fields(text))
            except line.Malformed as error:
                raise damaged(self.folder, Problem(self.segment, n + 1, offset, "changed", str(error))) from error
            end, n, digest = offset + len(content) + 1, n + 1, stated
            if entry is not None and entry.at >= since and (kinds is None or entry.kind in kinds):
                yield entry
        self.place = Place(end, n, digest.hex(), size)

    def _problem(self, offset: int, kind: str, message: str) -> Problem:
        return Problem(self.segment, self.place.n, offset, kind, message)


def _entry(segment: str, n: int, fields: dict[str, object]) -> Entry | None:
    """The entry of a line's JSON, or None for one of the log's own."""
    if n == 0:
        if fields.get("format") != line.FORMAT or fields.get("segment") != segment:
            raise line.Malformed("the header is of another segment or of another format")
        return None
    number, at, kind = fields.pop("n", None), fields.pop("at", None), fields.pop("kind", None)
    if number != n or not isinstance(at, str) or not isinstance(kind, str):
        raise line.Malformed("it has not the number that follows, or no time or kind")
    return None if kind == line.CLOSED else Entry(at, segment, n, kind, fields)


def gone(segment: str) -> Problem:
    """A segment that was there isn't."""
    return Problem(segment, None, None, "segment_missing", "the segment is gone")


def _ended_before(handle: int, size: int, since: str) -> bool:
    """Whether the segment's last whole line is from before `since`; not, where that can't be told."""
    for glance in (GLANCE, line.MAX_LINE + GLANCE):
        tail = os.pread(handle, glance, max(0, size - glance))
        pieces = tail.rpartition(b"\n")[0].rpartition(b"\n")
        if pieces[1]:
            with suppress(line.Malformed):
                at = line.fields(line.split(pieces[2])[1]).get("at")
                return isinstance(at, str) and at < since
    return False


def listed(folder: Path) -> list[str]:
    """The ids of all segments, in order; none when there is no folder yet.

    Raises:
        Failure: `io_error`.
    """
    try:
        return segments(folder)[0] if check_private(folder, "the log") else []
    except OSError as error:
        raise io_failure("list the log's segments in", folder, error) from error


def entries(
    folder: Path,
    kinds: Collection[str] | None = None,
    since: datetime | None = None,
    on_damage: OnDamage | None = None,
) -> Iterator[Entry]:
    """All entries, oldest first, in order of time, segment and number.

    `kinds` and `since` select. With `on_damage` a damaged segment is read up to the damage, which is told, and the rest of
    it is left out. What is appended while reading may or may not be seen.

    Raises:
        Failure: `damaged`, naming the first bad line; `io_error`.
    """
    earliest = text_of(since) if since is not None else ""
    waiting = listed(folder)[::-1]
    # Entries sort as they stand, and no two have the same segment and number.
    heap: list[tuple[Entry, Iterator[Entry]]] = []
    while waiting or heap:
        while waiting and (not heap or begun(waiting[-1]) <= heap[0][0].at):
            stream = _told(folder, waiting.pop(), kinds, earliest, on_damage)
            if (first := next(stream, None)) is not None:
                heapq.heappush(heap, (first, stream))
        if not heap:
            return
        entry, stream = heap[0]
        yield entry
        if (following := next(stream, None)) is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (following, stream))


def _told(
    folder: Path, segment: str, kinds: Collection[str] | None, since: str, on_damage: OnDamage | None
) -> Iterator[Entry]:
    try:
        yield from SegmentReader(folder, segment).entries(kinds, since)
    except Failure as failure:
        if on_damage is None or failure.code != "damaged":
            raise
        details = failure.details
        on_damage(Problem(segment, details["n"], details["offset"], details["kind"], failure.message))


def changes(folder: Path, cursor: Cursor, kinds: Collection[str] | None = None) -> tuple[list[Entry], Cursor]:
    """What has been appended, by any process, since `cursor`; and the cursor behind it.

    In order of time, segment and number within one answer; an entry of another process that is a moment older may come with
    the next. The first answer is the whole log, so ask only for the `kinds` you keep.

    Raises:
        Failure: `damaged`, naming the first bad line, also when a segment has been shortened or is gone; `io_error`.
    """
    found: list[Entry] = []
    places: dict[str, Place] = {}
    for segment in listed(folder):
        place = Place(*cursor.places.get(segment, ()))
        try:
            size = os.stat(path_of(folder, segment), follow_symlinks=False).st_size
        except OSError as error:
            raise io_failure("read the log's segment", path_of(folder, segment), error) from error
        if size != place.size:
            reader = SegmentReader(folder, segment, place)
            found += reader.entries(kinds)
            place = reader.place
        places[segment] = place
    for segment in cursor.places:
        if segment not in places:
            raise damaged(folder, gone(segment))
    found.sort(key=lambda entry: entry[:3])
    return found, Cursor(places)
