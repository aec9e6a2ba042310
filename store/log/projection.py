"""Projections: states that are made of the log's entries, and follow what any process appends.

To look is to ask each living segment for its length, which is one cheap call on a handle that is kept open, and to read on where it
has grown. A segment whose writer is gone and which was read to its end can't grow any more: its handle is closed and it is
never looked at again. A new segment changes the time of the folder; the folder is listed when that has changed, and
again until more than the clock's tick has passed since, because what is created within one tick leaves the same time.

Within one look entries come in the log's order, by time, segment and number. Over several looks each segment's entries keep their
order, and an entry that was appended before a look began is seen by it at the latest; but a later look may bring an entry with
an earlier time than one seen before: the two came from different processes, and were appended at nearly the same moment, or the
clock was set back in between. Among entries that are all appended inside `exclusively()`, each by somebody who looked first, a
later look never brings what was appended earlier.

A snapshot spares a new process the reading of the whole log: the fold's state, and how far each segment was read. It is
derived and may be deleted. One that is damaged, of another version, or doesn't fit the log (a segment is gone, or there is
another line where the cursor stands) is passed over, and the state is made anew. What lies before its cursor is not proved
again; `verify` does that.

A look that fails or is interrupted halfway leaves a fold half done; the next one begins from the snapshot again.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Entry
from albert_tools.store.log.reader import SegmentReader, gone, listed, merged, stands
from albert_tools.store.log.segment import alive, open_segment, path_of
from albert_tools.store.log.snapshot import Snapshot, check_name, keep, kept
from albert_tools.store.log.trouble import damaged
from albert_tools.store.os_errors import io_failure

if TYPE_CHECKING:
    from albert_tools.engine.model.protocols import Fold

#: Bytes of the log that are read before a snapshot is worth writing (a second reads some fifty times as much), ...
SNAPSHOT_AFTER = 2 * 1024 * 1024
#: ... and when the process ends, which costs nobody any time.
SNAPSHOT_AT_END = 64 * 1024
#: A snapshot isn't written before so many times its own size has been read: a large state is not written for a few entries.
TIMES_ITS_SIZE = 2
#: How much later a look inside the section writes one, since others wait meanwhile.
LATER_INSIDE = 4
#: Seconds between two questions whether the writers live.
ALIVE_EVERY = 1.0
#: Seconds for which a folder's time may stay the same though something is created in it: a few ticks of the system's clock ...
TICK = 0.05
#: ... or more than the two seconds of file systems that keep whole seconds.
COARSE_TICK = 2.5


class Tail(SegmentReader):
    """A segment that may still grow. `handle` is -1 until it is first read."""

    handle: int = -1

    def following(self, kinds: frozenset[str]) -> Iterator[Entry]:
        """The entries from `place` on; then `handle` is -1 if there will be no more, ever.

        Raises:
            Failure: `damaged`, `io_error`.
        """
        first = self.handle < 0
        handle = self.opened()
        try:
            # In this order: a writer that has written anything has locked it before, and what a writer that is gone
            # now has written is there to be read. One that was alive is asked for again by and by, not at each entry.
            ended = first and os.fstat(handle).st_size > 0 and not alive(handle)
            yield from self.read(handle, kinds)
        except OSError as error:
            raise io_failure("read the log's segment", path_of(self.folder, self.segment), error) from error
        if ended:
            self.close()

    def check_length(self) -> None:
        """See that the segment, if it is open, is not shorter than what was read of it.

        Raises:
            Failure: `damaged`.
            OSError: as the system says.
        """
        if self.handle >= 0:
            self.not_shortened(os.lseek(self.handle, 0, os.SEEK_END))

    def opened(self) -> int:
        """The handle."""
        if self.handle < 0:
            try:
                self.handle = open_segment(self.folder, self.segment)
            except FileNotFoundError:
                raise damaged(self.folder, gone(self.segment)) from None
            except OSError as error:
                raise io_failure("read the log's segment", path_of(self.folder, self.segment), error) from error
        return self.handle

    def close(self) -> None:
        """Let go of the handle."""
        handle, self.handle = self.handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()


class Projection:
    """`Following`: keeps `fold`, which must be fresh, at what stands in the log at `folder`.

    `cache` gives the folder for snapshots, None does without; `inside` tells whether this thread is in the log's section.
    """

    def __init__(
        self,
        folder: Path,
        fold: Fold,
        cache: Callable[[], Path] | None = None,
        inside: Callable[[], bool] = lambda: False,
        snapshot_after: int = SNAPSHOT_AFTER,
    ) -> None:
        check_name(fold.name)
        self.fold = fold
        self._folder = folder
        self._path = os.fspath(folder)
        self._cache = cache
        self._inside = inside
        self._snapshot_after = snapshot_after
        self._lock = threading.Lock()
        self._fresh = msgspec.json.encode(fold.dump())
        self._ready = False
        self._clear()
        _projections.add(self)

    def _clear(self) -> None:
        self._tails: dict[str, Tail] = {}
        self._finished: set[str] = set()
        # The tails by what a look asks of them, made anew when that changes: looking is to cost microseconds.
        self._watched: list[tuple[int, int, Tail]] | None = None
        self._unread: list[Tail] = []
        self._stamp: int | None = None  # the folder's time when it was last listed
        self._stamp_seen = 0.0
        self._settled = False  # whether that time can hide nothing more
        self._ask_again = 0.0
        self._unsaved = 0
        self._saved_size = 0

    def look(self) -> None:
        """Bring the fold up to date with everything that any process appended before this call.

        From any thread; who reads the fold while another thread looks must see to it that they don't meet.

        Raises:
            Failure: `damaged`, naming the first bad line, also when a segment was shortened or is gone; `io_error`.
        """
        with self._lock:
            try:
                self._look()
            except Failure as failure:
                if not self._folded(failure):
                    raise
                # What was read is another file's by now, in part: begin anew.
                self._ready = False
                self._look()

    def _look(self) -> None:
        if not self._ready:
            self._start()
        try:
            grown = self._grown()
        except FileNotFoundError:
            grown = []
            if self._tails or self._finished:
                raise damaged(self._folder, gone(min([*self._tails, *self._finished]))) from None
        except OSError as error:
            raise io_failure("look at the log in", self._folder, error) from error
        if grown:
            self._read(grown)

    def _folded(self, failure: Failure) -> bool:
        """Whether a segment is gone because it was folded."""
        if failure.code != "damaged" or failure.details.get("kind") != "segment_missing":
            return False
        from albert_tools.store.log.fold_records import what_was_folded

        return failure.details["segment"] in what_was_folded(self._folder)

    def _grown(self) -> list[Tail]:
        now = time.monotonic()
        stamp = os.stat(self._path).st_mtime_ns
        if stamp != self._stamp or not self._settled:
            self._list(stamp, now)
        elif now >= self._ask_again:
            self._part(now)
        if self._watched is None:
            self._watched = [(t.handle, t.place.size, t) for t in self._tails.values() if t.handle >= 0]
            self._unread = [t for t in self._tails.values() if t.handle < 0]
        seek, end = os.lseek, os.SEEK_END
        return self._unread + [tail for handle, size, tail in self._watched if seek(handle, 0, end) != size]

    def _list(self, stamp: int, now: float) -> None:
        """Find the segments that are new, and see that none is gone."""
        if stamp != self._stamp:
            self._stamp, self._stamp_seen, self._settled = stamp, now, False
        # Since it was first seen here, not since it says: the folder's clock may be another machine's.
        tick = COARSE_TICK if stamp % 1_000_000_000 == 0 else TICK
        settled = now - self._stamp_seen > tick
        there = listed(self._folder)
        tails, finished = self._tails, self._finished
        for segment in there:
            if segment not in tails and segment not in finished:
                tails[segment] = Tail(self._folder, segment)
                self._watched = None
        if len(there) != len(tails) + len(finished):
            raise damaged(self._folder, gone(min({*tails, *finished}.difference(there))))
        self._settled = settled

    def _part(self, now: float) -> None:
        """Let those segments go whose writers are gone and whose end was read."""
        self._ask_again = now + ALIVE_EVERY
        for tail in list(self._tails.values()):
            if tail.handle >= 0 and tail.place.size > 0 and not alive(tail.handle):
                if os.lseek(tail.handle, 0, os.SEEK_END) == tail.place.size:
                    self._finish(tail)

    def _finish(self, tail: Tail) -> None:
        self._watched = None
        tail.close()
        del self._tails[tail.segment]
        self._finished.add(tail.segment)

    def _read(self, grown: list[Tail]) -> None:
        before = sum(tail.place.offset for tail in grown)
        kinds, apply = self.fold.kinds, self.fold.apply
        self._watched = None
        for tail in grown:
            # Before the fold is touched: who begins anew would no longer know how long it was.
            tail.check_length()
        try:
            if len(grown) == 1:
                entries = grown[0].following(kinds)
            else:
                entries = merged([(tail.segment, tail.following(kinds)) for tail in grown])
            for entry in entries:
                self._ready = False
                apply(entry)
            self._ready = True
        finally:
            if not self._ready:
                # Damage, or a signal's handler or the fold itself raised: the next look begins anew.
                self._clear()
        for tail in grown:
            if tail.handle < 0:
                self._finish(tail)
        self._unsaved += sum(tail.place.offset for tail in grown) - before
        due = max(self._snapshot_after, TIMES_ITS_SIZE * self._saved_size)
        if self._unsaved >= due and (not self._inside() or self._unsaved >= LATER_INSIDE * due):
            self._save()

    # Snapshots

    def _start(self) -> None:
        self._clear()
        with suppress(Exception):  # of whatever kind: it is only a snapshot
            found = None if self._cache is None else kept(self._cache(), self.fold.name, self.fold.version)
            if found is not None and self._fits(found[0]):
                snapshot, size = found
                self.fold.load(snapshot.state)
                self._finished = set(snapshot.finished)
                places = snapshot.places.items()
                self._tails = {segment: Tail(self._folder, segment, place) for segment, place in places}
                self._watched = None
                self._saved_size = size
                self._ready = True
        if not self._ready:
            self.fold.load(msgspec.json.decode(self._fresh))
            self._ready = True

    def _fits(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is one of this log."""
        there = set(listed(self._folder))
        if not there.issuperset(snapshot.finished) or not there.issuperset(snapshot.places):
            return False
        if snapshot.kinds != sorted(self.fold.kinds):
            return False
        return all(stands(self._folder, segment, place) for segment, place in snapshot.places.items())

    def _save(self) -> None:
        self._unsaved = 0
        if self._cache is None:
            return
        snapshot = Snapshot(
            name=self.fold.name,
            version=self.fold.version,
            kinds=sorted(self.fold.kinds),
            finished=sorted(self._finished),
            # The size is what is looked at for growth: the reader of a snapshot reads on in any case.
            places={segment: tail.place._replace(size=-1) for segment, tail in self._tails.items()},
            state=self.fold.dump(),
        )
        with suppress(Failure, OSError):
            self._saved_size = keep(self._cache(), snapshot)

    def close(self) -> None:
        """Leave a snapshot behind where it pays. Looking goes on to be possible."""
        with self._lock:
            if self._ready and self._unsaved >= max(min(SNAPSHOT_AT_END, self._snapshot_after), self._saved_size):
                self._save()

    def _forked(self) -> None:
        """In a child: a look that another thread was in the middle of never comes to its end here."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._ready = False


_projections: weakref.WeakSet[Projection] = weakref.WeakSet()


def _after_fork() -> None:
    for projection in list(_projections):
        projection._forked()


os.register_at_fork(after_in_child=_after_fork)
