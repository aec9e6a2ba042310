"""The runs of a home: a journal each, in a folder for the day on which the run began.

    runs/2026-01-31/0123456789abcdef.jsonl    the journal (`journal`)
    runs/2026-01-31/0123456789abcdef.cancel   somebody has asked for the run's end

Days keep folders small, sort the runs, and are what a person who tidies up thinks in. All of it is the owner's alone, and neither
`runs` nor a day may be a link to elsewhere. To be asked for its end is a file beside the journal: anybody can leave it, whoever
runs the run, and asking before each step whether it is there costs one system call.
"""

from __future__ import annotations

import builtins
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import LoadedRun, RunSummary
from albert_tools.store.journal import MAX_LINE, Reading, RunJournal, header_line, read_header
from albert_tools.store.locks import lock
from albert_tools.store.log import line
from albert_tools.store.log.lines import last_line, lines
from albert_tools.store.log.segment import FILE_MODE, alive
from albert_tools.store.os_errors import io_failure
from albert_tools.store.places import sync_folder
from albert_tools.store.private_folder import check_private, make_private

RUN = re.compile(r"[0-9a-f]{16}\Z")
SUFFIX = ".jsonl"
CANCEL = ".cancel"
_BEGINNING = re.compile(r"[0-9a-f]{1,16}\Z")
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")
#: Seconds to try for a journal: who only looks whether it is held, holds it for an instant.
PATIENCE = 0.05
#: Seconds to try for one that was made just now; for this long, a stopped process holds it.
NEW_PATIENCE = 5.0


class Runs:
    """`RunStore` on files under `folder`, which need not exist: the first run makes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))
        #: The cancel markers of the runs that this process holds.
        self._markers: dict[str, str] = {}
        self._today: tuple[str, Path] = "", self.folder

    def create(self, run_id: str, header: Mapping[str, Any]) -> RunJournal:
        """Begin a journal with `header` (JSON). It survives this process, and with `sync` also the machine.

        Raises:
            Failure: `invalid_arguments` for what is no id; `not_json`, `too_large`; `exists`; `io_error`.
        """
        _check(run_id)
        created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        digest, content = header_line(run_id, created, header)
        folder = self._day(created[:10])
        path = folder / (run_id + SUFFIX)
        try:
            handle = self._begin(folder, path)
        except FileExistsError:
            raise Failure("exists", f"there is a run {run_id} already", details={"path": str(path)}) from None
        except OSError as error:
            raise io_failure("create the journal of a run at", path, error) from error
        try:
            # Who lists runs may look just now whether anybody holds it.
            lock(handle, path, NEW_PATIENCE, f"another process holds the new journal {path}", "end it and try again")
            if os.write(handle, content) != len(content):
                raise OSError("only a part of the header could be written")
        except BaseException as error:
            os.close(handle)
            with suppress(OSError):
                os.unlink(path)
            if isinstance(error, OSError):
                raise io_failure("create the journal of a run at", path, error) from error
            raise
        return self._held(RunJournal(run_id, path, handle, dict(header), digest, closed=self._forget))

    def open(self, run_id: str) -> RunJournal:
        """The journal of a run, to go on with it. Half an entry that a crash left at its end is cut off.

        Raises:
            Failure: `not_found`; `damaged`, naming the first bad line; `io_error`, retryable when another process holds it;
                `invalid_arguments` for what is no id.
        """
        _check(run_id)
        path = self._find(run_id)
        handle = _opened(path, os.O_RDWR | os.O_APPEND, run_id)
        try:
            lock(
                handle,
                path,
                PATIENCE,
                f"another process is executing the run {run_id}",
                "wait for its end, or cancel it",
            )
            if os.fstat(handle).st_nlink == 0:
                raise _not_found(run_id)  # it was swept away just now
            reading = Reading(run_id, path, handle)
            texts = reading.texts()
            _, header = reading.header(texts)
            for _ in texts:
                pass
            if reading.torn:
                os.ftruncate(handle, reading.end)
        except OSError as error:
            os.close(handle)
            raise io_failure("open the journal of a run at", path, error) from error
        except BaseException:
            os.close(handle)
            raise
        return self._held(RunJournal(run_id, path, handle, header, reading.hash, reading.torn, self._forget))

    def load(self, run_id: str) -> LoadedRun:
        """A run's record as it stands; the beginning of an id will do where only one begins so.

        Raises:
            Failure: `not_found`, `damaged`, `io_error`; `invalid_arguments` for what begins no id, or several.
        """
        path = self._find(run_id) if RUN.match(run_id) else self._only(run_id)
        run_id = path.name.removesuffix(SUFFIX)
        handle = _opened(path, os.O_RDONLY, run_id)
        try:
            held = alive(handle)
            reading = Reading(run_id, path, handle)
            texts = reading.texts()
            created, header = reading.header(texts)
            entries = reading.entries(texts)
            # Half a line in a journal that is held is being written.
            torn = reading.torn and not held
            return LoadedRun(run_id, created, header, entries, held, os.access(_marker(path), os.F_OK), torn)
        finally:
            os.close(handle)

    def list(self, limit: int) -> builtins.list[RunSummary]:
        """At most `limit` runs, newest first; those that can't be read among them, with their `problem`.

        Raises:
            Failure: `io_error`.
        """
        found: list[RunSummary] = []
        for day in self._days():
            if len(found) >= limit:
                break
            of_day = [_summary(self.folder / day / name) for name in self._names(day)]
            found += sorted(of_day, key=lambda run: (run.created or day, run.id), reverse=True)
        return found[: max(0, limit)]

    def cancel(self, run_id: str) -> None:
        """Ask whoever runs it to stop; that holds also when it is resumed. Durable.

        Raises:
            Failure: `not_found`, `io_error`, `invalid_arguments` for what is no id.
        """
        _check(run_id)
        path = self._find(run_id)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            os.close(os.open(_marker(path), flags, FILE_MODE))
            sync_folder(path.parent)
        except OSError as error:
            raise io_failure("cancel the run at", path, error) from error

    def cancelled(self, run_id: str) -> bool:
        """Whether somebody has asked for its end. One system call for a run that this process holds.

        Raises:
            Failure: for other runs, as `cancel`.
        """
        marker = self._markers.get(run_id)
        if marker is None:
            _check(run_id)
            marker = _marker(self._find(run_id))
        return os.access(marker, os.F_OK)

    def sweep(self, older_than_seconds: float, keep: Callable[[str], bool]) -> int:
        """Delete the records of runs that nothing was added to for so long; returns how many.

        Those stay that a process holds or `keep`, asked with the id, names: it must name what isn't finished.

        Raises:
            Failure: `io_error`; `invalid_arguments` for a negative age.
        """
        if not older_than_seconds >= 0:
            raise Failure("invalid_arguments", f"{older_than_seconds} is not an age in seconds")
        swept = 0
        for day in self._days():
            for name in self._names(day):
                path = self.folder / day / name
                with suppress(FileNotFoundError):
                    try:
                        old = os.stat(path, follow_symlinks=False).st_mtime < time.time() - older_than_seconds
                        if old and not keep(name.removesuffix(SUFFIX)):
                            swept += _taken(path)
                    except FileNotFoundError:
                        raise
                    except OSError as error:
                        raise io_failure("delete the journal of a run at", path, error) from error
            with suppress(OSError):
                os.rmdir(self.folder / day)  # when it is empty
        return swept

    # Finding

    def _day(self, day: str) -> Path:
        """The folder of a day; the last one is remembered, since joining paths costs as much as a system call."""
        if self._today[0] != day:
            self._today = day, self.folder / day
        return self._today[1]

    def _begin(self, folder: Path, path: Path) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        for last in (False, True):
            # A link is found before anything is made behind it.
            if not (self._own(self.folder) and self._own(folder)):
                make_private(self.folder, "the runs")
                make_private(folder, "the runs")
            try:
                return os.open(path, flags, FILE_MODE)
            except FileNotFoundError:
                if last:  # else it was swept away as empty just now
                    raise
        raise AssertionError

    def _own(self, folder: Path) -> bool:
        """Whether there is `folder`, and it is private and no link.

        Raises:
            Failure: `io_error`.
        """
        return check_private(folder, "the runs", follow=False)

    def _days(self) -> builtins.list[str]:
        """The days that have folders, newest first."""
        try:
            if not self._own(self.folder):
                return []
            return sorted((name for name in os.listdir(self.folder) if _DAY.match(name)), reverse=True)
        except OSError as error:
            raise io_failure("list the runs in", self.folder, error) from error

    def _names(self, day: str) -> builtins.list[str]:
        folder = self.folder / day
        try:
            if not self._own(folder):
                return []
            return [name for name in os.listdir(folder) if name.endswith(SUFFIX) and RUN.match(name[: -len(SUFFIX)])]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise io_failure("list the runs in", folder, error) from error

    def _find(self, run_id: str) -> Path:
        for day in self._days():
            path = self.folder / day / (run_id + SUFFIX)
            if os.path.lexists(path) and self._own(path.parent):
                return path
        raise _not_found(run_id)

    def _only(self, beginning: str) -> Path:
        if not _BEGINNING.match(beginning):
            raise Failure("invalid_arguments", f"{beginning[:80]!r} is neither a run's id nor the beginning of one")
        found = [p for p in self._paths() if p.name.startswith(beginning)]
        if not found:
            raise _not_found(beginning)
        if len(found) > 1:
            some = ", ".join(sorted(p.name.removesuffix(SUFFIX) for p in found)[:5])
            raise Failure(
                "invalid_arguments", f"{len(found)} runs begin with {beginning!r}", hint=f"for example {some}"
            )
        return found[0]

    def _paths(self) -> Iterator[Path]:
        for day in self._days():
            for name in self._names(day):
                yield self.folder / day / name

    def _held(self, journal: RunJournal) -> RunJournal:
        self._markers[journal.id] = _marker(journal.path)
        return journal

    def _forget(self, run_id: str) -> None:
        self._markers.pop(run_id, None)


def _marker(path: Path) -> str:
    return os.fspath(path).removesuffix(SUFFIX) + CANCEL


def _check(run_id: str) -> None:
    if not RUN.match(run_id):
        raise Failure("invalid_arguments", f"{run_id[:80]!r} is not a run's id", hint="an id is sixteen hex digits")


def _not_found(run_id: str) -> Failure:
    return Failure("not_found", f"there is no run {run_id}", hint="it never started here, or was deleted")


def _opened(path: Path, flags: int, run_id: str) -> int:
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _not_found(run_id) from None
    except OSError as error:
        raise io_failure("open the journal of a run at", path, error) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise io_failure("open the journal of a run at", path, OSError("not a regular file"))
    return handle


def _taken(path: Path) -> bool:
    """Delete a journal that nobody holds."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Held while it is deleted, so that whoever opens it meanwhile sees that it is gone.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
        with suppress(FileNotFoundError):
            os.unlink(_marker(path))
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(handle)


def _summary(path: Path) -> RunSummary:
    run_id = path.name.removesuffix(SUFFIX)
    try:
        handle = _opened(path, os.O_RDONLY, run_id)
    except Failure as failure:
        return RunSummary(run_id, problem=failure.message)
    try:
        size = os.fstat(handle).st_size
        held = alive(handle)
        _, content, whole = next(lines(handle, most=MAX_LINE), (0, b"", False))
        if not whole:
            return RunSummary(run_id, held=held, size_bytes=size, problem="it never started")
        created, header = read_header(run_id, line.proved(line.NOTHING, content, MAX_LINE)[1])
        content_of_last = last_line(handle, size, MAX_LINE)
        last = None if content_of_last is None else line.fields(line.split(content_of_last, MAX_LINE)[1])
        return RunSummary(run_id, created, header, last, held, os.access(_marker(path), os.F_OK), size)
    except (line.Malformed, OSError) as error:
        return RunSummary(run_id, problem=str(error))
    finally:
        os.close(handle)
