"""The writing half: append at once, make durable together.

An append is one `write` to the process's own segment, so it survives `kill -9` from the moment it returns; only
`durable` makes it survive a power cut too. Syncing costs a hundred times as much as appending, so waiters share it:
whoever begins a sync covers everything appended until then, and those who come meanwhile share the next one.

When a write or a sync fails, what is on disk is unknown. A second try of a sync may report success for pages the
first one dropped, and a line after a torn one would be misread. So the first failure is the last: the log takes no
more, every waiter is told, and a new process begins a new segment.

A forked child inherits the handle but must not write to its parent's chain: it starts with no segment.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import Mark
from albert_tools.store.log import line
from albert_tools.store.log.clock import Clock
from albert_tools.store.log.segment import Segment, begun
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import sync_folder
from albert_tools.store.private_folder import make_private

Waiting = list["asyncio.Future[None]"]

#: Bytes of a segment; the next line goes to another one. Small enough to verify or copy in a moment.
ROTATE_AT = 64 * 1024 * 1024
_BOOT = Path("/proc/sys/kernel/random/boot_id")

#: macOS has no fdatasync; its fsync covers more and costs more.
_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


#: A named tuple's own constructor takes three times as long.
_new = tuple.__new__


class Writer:
    """Appends to the log at `folder`, from any number of threads. The first append makes the folder and the segment."""

    def __init__(self, folder: Path, rotate_at: int = ROTATE_AT, nanoseconds: Callable[[], int] = time.time_ns) -> None:
        self.folder = folder
        self._rotate_at = rotate_at
        self._clock = Clock(nanoseconds)
        self._position = 0
        self._synced = 0
        self._begin()
        _writers.add(self)

    def _begin(self) -> None:
        """The state that a forked child doesn't share with its parent."""
        self._segment: Segment | None = None
        self._names: set[str] = set()
        self._fresh = False  # whether the folder must be synced too, to know the segment
        self._broken: Failure | None = None
        # `_lock` guards the state and is held for microseconds; `_turn` is held while syncing, and both in the
        # seldom moments of rotating and closing. Who wants both takes `_turn` first.
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: dict[asyncio.AbstractEventLoop, Waiting] = {}

    # Appending

    def append(self, kind: str, data: Mapping[str, Any]) -> Mark:
        """Write an entry of `kind` with `data` (JSON values; NaN and the infinities become null).

        On return it is the system's: it survives this process, and with `durable(mark)` also the machine.

        Raises:
            Failure: `invalid_arguments`, `not_json` or `too_large`, and nothing is written; `io_error`, and the log
                takes no more.
        """
        body = line.body(kind, data)
        with self._lock:
            segment = self._segment
            if segment is None or self._broken is not None:
                segment = self._writable()
            if self._fits(segment, body):
                return self._add(segment, body)
        with self._turn, self._lock:
            segment = self._writable()
            return self._add(segment if self._fits(segment, body) else self._rotate(segment), body)

    def _fits(self, segment: Segment, body: bytes) -> bool:
        return segment.size + len(body) + line.LEAD < self._rotate_at or segment.n == 0

    def _add(self, segment: Segment, body: bytes) -> Mark:
        self._write(segment, line.stamped(segment.n + 1, self._clock.now(), body))
        return _new(Mark, (segment.name, segment.n, self._position))

    def _writable(self) -> Segment:
        if self._broken is not None:
            raise self._refusal()
        return self._segment or self._open()

    def _open(self) -> Segment:
        make_private(self.folder, "the log")
        try:
            segment = Segment.create(self.folder, self._clock.later())
        except OSError as error:
            # Nothing is half written: it may be tried again.
            raise io_failure("begin a segment of the log in", self.folder, error) from error
        self._head(segment, None)
        self._segment, self._fresh = segment, True
        return segment

    def _head(self, segment: Segment, previous: Segment | None) -> None:
        before = None if previous is None else (previous.name, previous.n, previous.hash)
        self._write(segment, line.header(segment.name, begun(segment.name), os.getpid(), _boot(), before))
        self._names.add(segment.name)

    def _rotate(self, old: Segment) -> Segment:
        """Close `old` and go on in a new segment, chained to it.

        Both locks must be held: where a sync under way fails, another one here might not, and would hide it.
        The new file is there before the old one names it, and the old one is durable before the new one vouches
        for it, so that neither a kill nor a power cut in between looks like tampering.
        """
        new: Segment | None = None
        try:
            new = Segment.create(self.folder, self._clock.later())
            sync_folder(self.folder)
            self._write(old, line.stamped(old.n + 1, self._clock.now(), line.closing(new.name)))
            _sync(old.handle)
            self._synced = self._position
            self._head(new, old)
        except OSError as error:
            raise self._break("continue the log in", self.folder, error) from error
        except BaseException as error:
            if new is None and isinstance(error, Failure):
                raise  # somebody holds the new file, and the old one goes on: it may be tried again
            # A signal's handler raised in the middle; nothing may come behind a closing entry.
            self._break("continue the log in", self.folder, OSError("it was interrupted"))
            raise
        self._segment, self._fresh = new, False
        old.retire()
        return new

    def _write(self, segment: Segment, text: bytes) -> None:
        """Add a line. The lock must be held."""
        digest = line.chain(segment.hash, text)
        content = line.line(digest, text)
        after = (digest, segment.n + 1, segment.size + len(content), self._position + 1)
        try:
            if os.write(segment.handle, content) != len(content):
                raise OSError("only a part of the entry could be written")
            segment.hash, segment.n, segment.size, self._position = after
        except OSError as error:
            raise self._break("append to the log", segment.path, error) from error
        except BaseException:
            # A signal's handler raised, before the write or after it: the file's size tells.
            self._break("append to the log", segment.path, OSError("it was interrupted"))
            size = os.fstat(segment.handle).st_size
            if size == after[2]:
                segment.hash, segment.n, segment.size, self._position = after
            if size in (after[2], after[2] - len(content)):
                self._broken = None
            raise

    # Making durable

    def durable(self, mark: Mark) -> None:
        """Wait until everything up to `mark` is on the disk. Shares the sync with others who wait.

        Raises:
            Failure: `io_error`: it may not be there, and the log takes no more.
            ValueError: when the mark is not of this log in this process.
        """
        self._known(mark)
        if mark.position > self._synced:
            with self._turn:
                if mark.position > self._synced:
                    self._commit()

    async def adurable(self, mark: Mark) -> None:
        """As `durable`, waiting in the event loop while a thread syncs."""
        self._known(mark)
        if mark.position <= self._synced:
            return
        loop = asyncio.get_running_loop()
        # A future each: one of them being cancelled is nobody else's business.
        waiter = loop.create_future()
        with self._lock:
            served = loop in self._waiting or self._begin_serving(loop)
            if served:
                self._waiting[loop].append(waiter)
        if served:
            await waiter
        else:
            self.durable(mark)

    def _begin_serving(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Have a thread sync for those who will be waiting in `loop`; False where no thread can be had."""
        waiting: Waiting = []
        try:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "albert-log")
            self._thread.submit(self._serve, loop, waiting)
        except RuntimeError:
            self._thread = None
            return False
        self._waiting[loop] = waiting
        return True

    def _serve(self, loop: asyncio.AbstractEventLoop, waiting: Waiting) -> None:
        """Sync for those who wait in `loop`, and wake them all at once."""
        failure: BaseException | None = None
        try:
            with self._turn:
                with self._lock:
                    # Who comes from now on needs the next sync.
                    if self._waiting.get(loop) is waiting:
                        del self._waiting[loop]
                self._commit()
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_wake, waiting, failure)

    def _commit(self) -> None:
        """Sync what has been appended by now. `_turn` must be held."""
        with self._lock:
            if self._broken is not None:
                raise self._refusal()
            segment, position, fresh = self._segment, self._position, self._fresh
            if segment is None or position == self._synced:
                return
        self._flush(segment, fresh)
        with self._lock:
            self._synced = position
            self._fresh = False

    def _known(self, mark: Mark) -> None:
        if mark.segment not in self._names or mark.position > self._position:
            raise ValueError(f"{mark} is not of this log in this process")

    # Ending

    def close(self) -> None:
        """End the segment with an entry that says so, durably. A later append begins another.

        Raises:
            Failure: `io_error`, unless that was said before.
        """
        with self._turn, self._lock:
            thread, self._thread = self._thread, None
            segment, self._segment = self._segment, None
            if segment is not None:
                try:
                    if self._broken is None:
                        self._write(segment, line.stamped(segment.n + 1, self._clock.now(), line.closing(None)))
                        self._flush(segment, self._fresh)
                        self._synced = self._position
                finally:
                    segment.retire()
        if thread is not None:
            thread.shutdown()

    def _flush(self, segment: Segment, fresh: bool) -> None:
        try:
            if fresh:
                sync_folder(self.folder)
            _sync(segment.handle)
        except OSError as error:
            raise self._break("make the log durable in", segment.path, error) from error

    def _break(self, action: str, path: Path, error: OSError) -> Failure:
        """Take no more from now on; returns the failure to raise."""
        failure = io_failure(action, path, error)
        if self._broken is None:
            self._broken = failure
        return failure

    def _refusal(self) -> Failure:
        first = self._broken
        assert first is not None
        return Failure(
            "io_error",
            f"the log accepts no more entries after a failure: {first.message}",
            hint=f"{first.hint or 'check the disk'}; then restart",
            details=first.details,
        )

    def _forked(self) -> None:
        """In a child: leave the parent's segment alone and begin anew."""
        if self._segment is not None:
            with suppress(OSError):
                os.close(self._segment.handle)
        self._synced = self._position
        self._begin()


def _wake(waiting: Waiting, failure: BaseException | None) -> None:
    for waiter in waiting:
        if waiter.done():
            continue
        if failure is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(replace(failure) if isinstance(failure, Failure) else failure)


def _boot() -> str | None:
    """The id that the host gave to its present run, where it gives one."""
    try:
        return _BOOT.read_text("ascii").strip()
    except (OSError, ValueError):
        return None


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


def _after_fork() -> None:
    for writer in list(_writers):
        writer._forked()


os.register_at_fork(after_in_child=_after_fork)
