"""The log of one home: append-only, hash-chained, written by any number of processes.

Ledger, journals, the table of repeats, approvals and rate windows are all projections of it, so that no two of them can
disagree about what happened. Each process writes a segment of its own (`segment`), line by line (`line`), and needs no lock
shared with others (`writer`); readers merge the segments by time (`reader`); `verify` proves them.

Nothing is hidden here: whoever appends redacts secrets first. Who only appends, as every run does, loads no reader.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.record_types import Cursor, Entry, Mark
from albert_tools.store.log.clock import Clock, text_of
from albert_tools.store.log.exclusive import Exclusive
from albert_tools.store.log.writer import ROTATE_AT, Writer

if TYPE_CHECKING:
    from albert_tools.engine.model.protocols import Fold, Following
    from albert_tools.store.log.folding import Condense, Folded
    from albert_tools.store.log.projection import Projection
    from albert_tools.store.log.reader import OnDamage
    from albert_tools.store.log.verify import Verification


class Log:
    """`Ledger` on files in `folder`, which need not exist: the first append makes it, and reading makes nothing.

    `rotate_at` is the size in bytes at which a segment is continued in another; `nanoseconds` the system's clock;
    `cache` gives the folder for projections' snapshots, None does without. Every method may be called from any thread; of a
    forked child's, none touches its parent's segment.
    """

    def __init__(
        self,
        folder: Path,
        rotate_at: int = ROTATE_AT,
        nanoseconds: Callable[[], int] = time.time_ns,
        cache: Callable[[], Path] | None = None,
    ) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._nanoseconds = nanoseconds
        self._writer = Writer(self.folder, rotate_at, nanoseconds)
        self._exclusive = Exclusive(self.folder)
        self._cache = cache
        self._projections: weakref.WeakSet[Projection] = weakref.WeakSet()

    def append(self, kind: str, data: Mapping[str, Any]) -> Mark:
        """Write an entry of `kind` with `data`: JSON values, of which NaN and the infinities become null.

        On return it survives this process, and with `durable(mark)` also the machine.

        Raises:
            Failure: `invalid_arguments`, `not_json` or `too_large` (over 1 MiB), and nothing is written; `io_error`: nothing
                is written when the folder can't be used, else what is on disk is unknown and the log takes no more.
        """
        return self._writer.append(kind, data)

    def durable(self, mark: Mark) -> None:
        """Wait until everything up to `mark` is on the disk. Who waits at the same time shares one sync.

        Raises:
            Failure: `io_error`: it may not be there, and the log takes no more.
            ValueError: when the mark is not of this log in this process.
        """
        self._writer.durable(mark)

    async def adurable(self, mark: Mark) -> None:
        """As `durable`, while a thread syncs."""
        await self._writer.adurable(mark)

    def exclusively(self) -> AbstractContextManager[None]:
        """Nobody else of this home, no thread and no process, is inside at the same time: to read, decide and append.

        It may be entered on an event loop's thread, so what is done inside takes microseconds: no await, no `durable` (the decision
        stands once it is appended; make it durable outside), no second entering. A process that dies inside leaves.

        Raises:
            Failure: on entering, `io_error`; retryable when others have been inside for 5 seconds.
            RuntimeError: on entering, when this thread is inside already.
        """
        return self._exclusive

    def follow(self, fold: Fold) -> Following:
        """Keep `fold`, which must be fresh, up to date: each `look()` applies what any process has appended since the last.

        In the log's order within one look; what is guaranteed over several, `projection` says. The first look begins with
        the fold's snapshot, or reads the whole log.

        Raises:
            ValueError: when the fold's name can't name a snapshot.
        """
        from albert_tools.store.log.projection import Projection

        projection = Projection(self.folder, fold, self._cache, lambda: self._exclusive.inside)
        self._projections.add(projection)
        return projection

    def alive(self, segment: str) -> bool:
        """Whether the process that writes `segment`, which an entry names, still lives and has not closed its log.

        False also when there is no such segment any more.

        Raises:
            Failure: `invalid_arguments` for what is no segment's id; `io_error`.
        """
        from albert_tools.store.log import reader

        return reader.writer_lives(self.folder, segment)

    def fold(self, until: datetime, condense: Condense) -> Folded:
        """Put what is to be kept of all finished segments with nothing from `until` on into one, and delete them.

        `condense` is given their entries, oldest first, and gives those that are kept: time, kind and data, no time earlier than
        the one before. Other processes may go on reading and writing; who was in the middle of `entries` may have to begin anew.

        Raises:
            Failure: `damaged`: a segment can't be proved, and nothing is folded; `io_error`, retryable while another process folds.
            ValueError: when `until` has no time zone.
        """
        from albert_tools.store.log.folding import fold

        found = fold(self.folder, text_of(until), condense)
        if found.segments:
            self.durable(self.append("fold", {**found._asdict(), "until": text_of(until)}))
        return found

    def close(self) -> None:
        """End this process's segment, durably. A later append begins another.

        Raises:
            Failure: `io_error`, unless that was said before.
        """
        for projection in list(self._projections):
            projection.close()
        self._exclusive.ended()
        self._writer.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def entries(
        self,
        kinds: Collection[str] | None = None,
        since: datetime | None = None,
        on_damage: OnDamage | None = None,
    ) -> Iterator[Entry]:
        """All entries of all processes in order of time, segment and number; `kinds` and `since` (inclusive) select.

        Streams: memory holds a line and a block of each segment that overlaps in time. With `on_damage` a damaged segment
        is read up to the damage, which is told, and the rest of it is left out. What is appended meanwhile may be seen
        or not. A segment whose last entry is before `since` is passed over unproved.

        Raises:
            Failure: `damaged`, naming the first bad line; `io_error`.
            ValueError: when `since` has no time zone.
        """
        from albert_tools.store.log import reader

        return reader.entries(self.folder, kinds, since, on_damage)

    def changes(self, cursor: Cursor = Cursor(), kinds: Collection[str] | None = None) -> tuple[list[Entry], Cursor]:  # noqa: B008
        """What any process has appended since `cursor` (the empty one: ever), and the cursor behind it.

        Costs a `stat` for each segment that hasn't grown. In order within one answer; an entry of another
        process that is a moment older may come with the next.

        Raises:
            Failure: `damaged`, naming the first bad line, also when a segment is shortened or gone; `io_error`.
        """
        from albert_tools.store.log import reader

        return reader.changes(self.folder, cursor, kinds)

    def verify(self, against: Mapping[str, Any] | None = None) -> Verification:
        """Prove the whole log, against the anchor `against` if there is one.

        Raises:
            Failure: `io_error` when the folder can't be listed; `invalid_arguments` for what is no anchor.
        """
        from albert_tools.store.log.verify import verify

        return verify(self.folder, against)

    def anchor(self) -> dict[str, Any]:
        """A small JSON document to keep where who writes the log can't: ``{format, at, segments: {id: {n, hash}}}``.

        What it names is on the disk.

        Raises:
            Failure: `damaged` when the log doesn't verify now; `io_error`.
        """
        from albert_tools.store.log.verify import anchor

        return anchor(self.folder, Clock(self._nanoseconds).now())
