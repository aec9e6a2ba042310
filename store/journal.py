"""The journal of one run: its calls and what became of them, in one file that one process holds at a time.

Lines are those of the log (`store.log.line`): a hash over the line before and this line's JSON, a space, the JSON. The first is the
header. They hold values as they are, dictionaries in their order, so that a run can be resumed from them; the log, whose values
are redacted, names the run.

Appending only buffers: a pure read may be done again after a crash. `flush` gives the buffer to the system in one write,
and `sync` to the disk. As with the log, a write or a sync that fails is the last. Half a line at the end is what a crash
leaves, and is cut off when the journal is opened again; anything else that isn't what was written is damage.

The holder has a `flock` on the file. A forked child has none of it: its journals are closed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_VALUE_DEPTH
from albert_tools.store.log import line
from albert_tools.store.log.lines import lines
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import sync_folder

FORMAT = 1
#: Bytes of an entry's JSON. It holds a call's arguments or its output, which go to the content store when they are larger.
MAX_ENTRY = 16 * 1024 * 1024
MAX_LINE = line.LEAD + MAX_ENTRY
#: How deep it may nest: a value of a program (`MAX_VALUE_DEPTH`) and what is around it.
MAX_DEPTH = MAX_VALUE_DEPTH + 24
#: Bytes that are buffered at most.
BUFFER = 64 * 1024


def header_line(run_id: str, created: str, header: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The hash and the bytes of a journal's first line.

    Raises:
        Failure: `not_json`, `too_large`.
    """
    data = {"format": FORMAT, "run": run_id, "created": created, "header": dict(header)}
    text = line.encoded(data, MAX_ENTRY, "the header of run", run_id, MAX_DEPTH, sort=False)
    digest = line.chain(line.NOTHING, text)
    return digest, line.line(digest, text)


def read_header(run_id: str, text: bytes) -> tuple[str, dict[str, Any]]:
    """When the run was created (ISO 8601), and its header.

    Raises:
        line.Malformed: it is not this run's.
    """
    fields = line.fields(text)
    created, header = fields.get("created"), fields.get("header")
    if fields.get("format") != FORMAT or fields.get("run") != run_id:
        raise line.Malformed("the header is of another run or of another format")
    if not isinstance(created, str) or not isinstance(header, dict):
        raise line.Malformed("the header has no time or no content")
    return created, header


class Reading:
    """One walk through a journal: `texts` gives each line's JSON, proved, the header first; then `end` and `hash` are those of the
    last whole line, `count` their number, and `torn` tells whether half a line comes behind it."""

    def __init__(self, run_id: str, path: Path, handle: int) -> None:
        self.run_id = run_id
        self.path = path
        self.handle = handle
        self.end = 0
        self.hash = line.NOTHING
        self.count = 0
        self.torn = False

    def texts(self) -> Iterator[bytes]:
        """The lines' JSON.

        Raises:
            Failure: `damaged`, `io_error`.
        """
        try:
            for offset, content, whole in lines(self.handle, most=MAX_LINE):
                if not whole:
                    if line.overwritten(content, (self.hash,), MAX_LINE):
                        raise self.damaged("its line ending was changed")
                    self.torn = True
                    return
                try:
                    self.hash, text = line.proved(self.hash, content, MAX_LINE)
                except line.Malformed as error:
                    raise self.damaged(str(error)) from error
                self.end = offset + len(content) + 1
                self.count += 1
                yield text
        except OSError as error:
            raise io_failure("read the journal of a run at", self.path, error) from error

    def header(self, texts: Iterator[bytes]) -> tuple[str, dict[str, Any]]:
        """When it was created, and the header: the first of `texts`.

        Raises:
            Failure: `not_found` when the run was never begun; as `texts`.
        """
        first = next(texts, None)
        if first is None:
            raise Failure("not_found", f"the run {self.run_id} never started: its journal has no header")
        try:
            return read_header(self.run_id, first)
        except line.Malformed as error:
            self.count, self.end = 0, 0
            raise self.damaged(str(error)) from error

    def entries(self, texts: Iterator[bytes]) -> list[dict[str, Any]]:
        """The rest of `texts`, decoded. Raises as `texts`."""
        found = []
        for text in texts:
            try:
                found.append(line.fields(text))
            except line.Malformed as error:
                raise self.damaged(str(error)) from error
        return found

    def damaged(self, message: str) -> Failure:
        """The failure that names the line behind the last good one."""
        where = "header" if self.count == 0 else f"entry {self.count}"
        return Failure(
            "damaged",
            f"the journal of run {self.run_id} is damaged: {where}, byte {self.end}: {message}",
            hint=f"keep the file unchanged and examine {self.path}",
            details={"path": str(self.path), "run": self.run_id, "n": self.count, "offset": self.end},
        )


class RunJournal:
    """`Journal` on an open file that this process has locked; it stands at its end, behind a line with hash `digest`."""

    def __init__(
        self,
        run_id: str,
        path: Path,
        handle: int,
        header: dict[str, Any],
        digest: bytes,
        torn: bool = False,
        closed: Callable[[str], object] = lambda run_id: None,
    ) -> None:
        self.id = run_id
        self.header = header
        self.torn = torn
        self.path = path
        self._handle = handle
        self._hash = digest
        self._closed = closed
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._broken: Failure | None = None
        self._dirty = True  # whether anything was written since the last sync
        self._known = False  # whether the file's name is on the disk
        # As in the log's writer: `_lock` guards the state, `_turn` is held while syncing, and is taken first.
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        _journals.add(self)

    def entries(self) -> list[dict[str, Any]]:
        """What stands in it, in order, proved. Flushes.

        Raises:
            Failure: `damaged`, `io_error`.
        """
        with self._lock:
            self._flush()
            reading = Reading(self.id, self.path, self._handle)
            texts = reading.texts()
            reading.header(texts)
            return reading.entries(texts)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Put `entry` (JSON values; NaN and the infinities become null) at the end; buffered.

        Raises:
            Failure: `not_json`, `too_large`, and nothing is appended; `io_error`, and the journal takes no more.
        """
        text = line.encoded(entry, MAX_ENTRY, "an entry of run", self.id, MAX_DEPTH, sort=False)
        with self._lock:
            self._usable()
            digest = line.chain(self._hash, text)
            # A signal's handler may raise between two of these: the line is there with its hash, or not at all.
            self._buffer.append(line.line(digest, text))
            self._hash = digest
            self._buffered += len(text)
            if self._buffered > BUFFER:
                self._flush()

    def flush(self) -> None:
        """Everything appended so far survives this process.

        Raises:
            Failure: `io_error`, and the journal takes no more.
        """
        with self._lock:
            self._flush()

    async def sync(self) -> None:
        """Everything appended so far survives the machine; a thread waits for the disk.

        Raises:
            Failure: `io_error`, and the journal takes no more.
        """
        self.flush()
        if self._dirty or not self._known:
            await asyncio.to_thread(self._sync)

    def close(self) -> None:
        """Flush, and let go of the file.

        Raises:
            Failure: `io_error`; it is let go of all the same.
        """
        with self._turn, self._lock:
            if self._handle < 0:
                return
            try:
                if self._broken is None:
                    self._flush()
            finally:
                handle, self._handle = self._handle, -1
                # Explicitly, because a child forked meanwhile shares the lock until it is let go of.
                with suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_UN)
                os.close(handle)
                self._closed(self.id)

    def _usable(self) -> None:
        if self._broken is not None:
            raise replace(self._broken)
        if self._handle < 0:
            raise Failure("io_error", f"the journal of run {self.id} is closed")

    def _flush(self) -> None:
        self._usable()
        if not self._buffer:
            return
        content = b"".join(self._buffer)
        self._broken = self._failure("write", OSError("it was interrupted"))  # should a signal's handler raise
        try:
            if os.write(self._handle, content) != len(content):
                raise OSError("only a part of the entries could be written")
        except OSError as error:
            self._broken = self._failure("write", error)
            raise self._broken from error
        self._buffer.clear()
        self._buffered = 0
        self._dirty = True
        self._broken = None

    def _sync(self) -> None:
        with self._turn:
            with self._lock:
                self._usable()
                self._dirty = False
            try:
                os.fsync(self._handle)
                if not self._known:
                    sync_folder(self.path.parent)
                    self._known = True
            except OSError as error:
                self._broken = self._failure("make durable", error)
                raise self._broken from error

    def _failure(self, action: str, error: OSError) -> Failure:
        return io_failure(f"{action} the journal of a run at", self.path, error)

    def _forked(self) -> None:
        """In a child: the journal is the parent's."""
        if self._handle >= 0:
            with suppress(OSError):
                os.close(self._handle)
        self._handle = -1
        self._buffer = []
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def __del__(self) -> None:
        # Whoever forgets a journal must not keep others from it.
        with suppress(Failure, AttributeError):
            self.close()


_journals: weakref.WeakSet[RunJournal] = weakref.WeakSet()


def _after_fork() -> None:
    for journal in list(_journals):
        journal._forked()


os.register_at_fork(after_in_child=_after_fork)
