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
from albert_tools.engine.model.record_types import Cursor, Entry, Place
from albert_tools.store.log import line
from albert_tools.store.log.clock import text_of
from albert_tools.store.log.fold_records import what_was_folded
from albert_tools.store.log.lines import last_line, lines
from albert_tools.store.log.segment import SEGMENT, alive, begun, open_segment, path_of, segments
from albert_tools.store.log.trouble import Problem, damaged
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import check_private

OnDamage = Callable[[Problem], None]


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
            raise missing(self.folder, self.segment) from None
        except OSError as error:
            raise io_failure("read the log's segment", path_of(self.folder, self.segment), error) from error
        try:
            yield from self.read(handle, kinds, since)
        except OSError as error:
            raise io_failure("read the log's segment", path_of(self.folder, self.segment), error) from error
        finally:
            os.close(handle)

    def read(self, handle: int, kinds: Collection[str] | None, since: str = "") -> Iterator[Entry]:
        """As `entries`, from a handle of the segment's.

        Raises:
            Failure: `damaged`.
            OSError: as the system says.
        """
        size = os.fstat(handle).st_size
        self.not_shortened(size)
        if since and _ended_before(handle, size, since):
            return
        end, n, digest = self.place.offset, self.place.n, bytes.fromhex(self.place.hash)
        wanted = None if kinds is None else tuple(line.kind_of(kind) for kind in kinds)
        for offset, content, whole in lines(handle, end, size):
            if not whole:
                if line.overwritten(content, (digest,)):
                    message = "its line ending was changed"
                    raise damaged(self.folder, Problem(self.segment, n + 1, offset, "changed", message))
                break
            try:
                stated, text = line.proved(digest, content)
                if wanted is not None and n >= 0 and not line.one_of(text, n + 1, wanted):
                    end, n, digest = offset + len(content) + 1, n + 1, stated
                    continue
                entry = _entry(self.segment, n + 1, line.fields(text))
            except line.Malformed as error:
                raise damaged(self.folder, Problem(self.segment, n + 1, offset, "changed", str(error))) from error
            end, n, digest = offset + len(content) + 1, n + 1, stated
            if entry is not None and entry.at >= since and (kinds is None or entry.kind in kinds):
                yield entry
        self.place = Place(end, n, digest.hex(), size)

    def not_shortened(self, size: int) -> None:
        """See that what was read is there still, in a segment of `size` bytes.

        Raises:
            Failure: `damaged`.
        """
        if size < self.place.offset:
            message = "the segment is shorter than it was"
            raise damaged(self.folder, Problem(self.segment, self.place.n, size, "shortened", message))


def _entry(segment: str, n: int, fields: dict[str, object]) -> Entry | None:
    """The entry of a line's JSON, or None for one of the log's own."""
    if n == 0:
        if fields.get("format") != line.FORMAT or fields.get("segment") != segment:
            raise line.Malformed("the header is of another segment or of another format")
        return None
    number, at, kind = fields.pop("n", None), fields.pop("at", None), fields.pop("kind", None)
    if number != n or not isinstance(at, str) or not isinstance(kind, str):
        raise line.Malformed("it does not have the next number, or has no time or kind")
    return None if kind in (line.CLOSED, line.FOLDED) else Entry(at, segment, n, kind, fields)


def gone(segment: str) -> Problem:
    """A segment that was there isn't."""
    return Problem(segment, None, None, "segment_missing", "the segment is gone")


def missing(folder: Path, segment: str) -> Failure:
    """What whoever reads the log is told where a segment isn't there any more: it was folded meanwhile, or taken away."""
    if segment not in what_was_folded(folder):
        return damaged(folder, gone(segment))
    return Failure(
        "io_error",
        f"the log's segment {segment} was folded into another one meanwhile",
        hint="read the log again from the beginning",
        retryable=True,
        details={"segment": segment},
    )


def _ended_before(handle: int, size: int, since: str) -> bool:
    """Whether the segment's last whole line is from before `since`; not, where that can't be told."""
    with suppress(line.Malformed):
        if (last := last_line(handle, size)) is not None:
            at = line.fields(line.split(last)[1]).get("at")
            return isinstance(at, str) and at < since
    return False


def stands(folder: Path, segment: str, place: Place) -> bool:
    """Whether the line that ends where `place` is states the hash that it should.

    Raises:
        OSError: as the system says.
    """
    if place.n <= 0:
        return True  # it is read from the header on, or right behind it, where the chain proves it
    handle = open_segment(folder, segment)
    try:
        if os.fstat(handle).st_size < place.offset or os.pread(handle, 1, place.offset - 1) != b"\n":
            return False
        content = last_line(handle, place.offset)
        return content is not None and content[: line.LEAD - 1].decode("ascii", "replace") == place.hash
    finally:
        os.close(handle)


def writer_lives(folder: Path, segment: str) -> bool:
    """Whether the process that writes `segment`, or what it was continued in, lives. False when there is no such segment.

    Raises:
        Failure: `invalid_arguments` for what is no segment's id; `io_error`.
    """
    if not SEGMENT.match(segment):
        raise Failure("invalid_arguments", f"{segment[:80]!r} is not a segment's id")
    try:
        while True:
            handle = open_segment(folder, segment)
            try:
                if alive(handle):
                    return True
                # A writer lets go of a segment that it has continued in another.
                last = last_line(handle, os.fstat(handle).st_size)
                fields = {} if last is None else line.fields(line.split(last)[1])
            finally:
                os.close(handle)
            following = fields.get("next") if fields.get("kind") == line.CLOSED else None
            # Segments sort by time, so this comes to an end whatever stands there.
            if not isinstance(following, str) or not SEGMENT.match(following) or following <= segment:
                return False
            segment = following
    except FileNotFoundError:
        record = what_was_folded(folder).get(segment)
        following = record.next if record is not None else None
        return following is not None and following > segment and writer_lives(folder, following)
    except line.Malformed:
        return False
    except OSError as error:
        raise io_failure("read the log's segment", path_of(folder, segment), error) from error


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
    return merged([(segment, _told(folder, segment, kinds, earliest, on_damage)) for segment in listed(folder)])


def merged(streams: list[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """The entries of several segments, each with its own in order, in order of time, segment and number.

    Each is begun only when the merge reaches the time in its segment's name.
    """
    waiting = sorted(streams, key=lambda stream: stream[0], reverse=True)
    # Entries sort as they stand, and no two have the same segment and number.
    heap: list[tuple[Entry, Iterator[Entry]]] = []
    while waiting or heap:
        while waiting and (not heap or begun(waiting[-1][0]) <= heap[0][0].at):
            stream = waiting.pop()[1]
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
            raise missing(folder, segment)
    found.sort(key=lambda entry: entry[:3])
    return found, Cursor(places)
