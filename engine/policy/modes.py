"""The mode that the whole installation is in, and who may change it.

It lies in one small file, so that every process sees a change at its next call. A person switches it; by itself it only goes
from `NORMAL` to `ALERT` (violations pile up) and between `NORMAL` and `DEGRADED` (the disk or the memory is nearly full).
`LOCKDOWN` is left only by a person, and only for `RECOVERY`. A file that can't be understood counts as `LOCKDOWN`: fail closed.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.definition import MODES, Mode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

#: Where each mode can be left for. Who may do it is another question: a service only does what `_BY_ITSELF` says.
NEXT: dict[Mode, tuple[Mode, ...]] = {
    "NORMAL": ("ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"),
    "ALERT": ("NORMAL", "DEGRADED", "LOCKDOWN", "RECOVERY"),
    "DEGRADED": ("NORMAL", "ALERT", "LOCKDOWN", "RECOVERY"),
    "LOCKDOWN": ("RECOVERY",),
    "RECOVERY": ("NORMAL", "ALERT", "DEGRADED", "LOCKDOWN"),
}
_BY_ITSELF = {("NORMAL", "ALERT"), ("NORMAL", "DEGRADED"), ("DEGRADED", "NORMAL")}

#: Seconds to wait for another process that is just writing the mode.
_LOCK_SECONDS = 1.0

#: As much as a mode's file can sensibly have.
_MAX_BYTES = 8192


class Thresholds(NamedTuple):
    """When the mode changes by itself. The second of each pair is for the way back, so that it doesn't flicker."""

    #: MiB free where the state is kept.
    disk_free_mb: float = 100
    disk_free_again_mb: float = 200
    #: Memory that can be had, as a share of all there is.
    memory_available: float = 0.03
    memory_available_again: float = 0.06
    #: Violations of the workspace's bounds within so many seconds.
    violations: int = 20
    violation_seconds: float = 60
    #: Seconds between two looks at disk and memory.
    look_seconds: float = 10


class Standing(NamedTuple):
    """The mode, since when (ISO 8601, UTC), by whom, and why."""

    mode: Mode = "NORMAL"
    since: str = ""
    by: str = ""
    cause: str = ""


class Modes:
    """The mode of one home. Safe to use from any thread and any number of processes."""

    def __init__(
        self,
        file: Path | None,
        thresholds: Thresholds | None = None,
        clock: Callable[[], float] = time.monotonic,
        ledger: Ledger | None = None,
        free: Callable[[], tuple[float, float]] | None = None,
    ) -> None:
        """`file` keeps the mode; None keeps it in this process. `ledger` is told of each change that is made here; `free` gives
        MiB of disk and the share of memory left."""
        self._file = file
        self._thresholds = thresholds or Thresholds()
        self._clock = clock
        self._ledger = ledger
        self._free = free or self._measured
        self._seen: tuple[int, int, int] | None = None
        self._standing = Standing()
        self._listeners: list[Callable[[Standing, Standing], None]] = []
        self._violations: deque[float] = deque()
        self._looked = -1e9

    @property
    def mode(self) -> Mode:
        """The mode now."""
        return self.standing().mode

    def standing(self) -> Standing:
        """The mode now, with its history's last step."""
        if self._file is None:
            return self._standing
        try:
            facts = os.stat(self._file)
        except (FileNotFoundError, NotADirectoryError):
            # It is there from the first change on, and nothing of ours removes it: what it said isn't taken back by its absence.
            gone = self._seen is not None and self._standing.mode != "NORMAL"
            seen, standing = (0, 0, 0) if gone else None, _unknown("its file is gone") if gone else Standing()
        except OSError as error:
            seen, standing = (0, 0, 0), _unknown(error.strerror or "it can't be reached")
        else:
            seen = _stamp(facts)
            if seen == self._seen:
                return self._standing
            standing = _read(self._file)
        before, self._standing, self._seen = self._standing, standing, seen
        if before.mode != standing.mode:
            self._tell(before, standing)
        return standing

    def listen(self, listener: Callable[[Standing, Standing], None]) -> None:
        """Be told of each change that this process sees: what it was, and what it is."""
        self._listeners.append(listener)

    def switch(self, mode: Mode, by: str, cause: str) -> Standing:
        """Change the mode, as a person decided.

        Raises:
            Failure: `invalid_arguments` for what is no mode or can't be reached from the present one, `io_error`.
        """
        if mode not in MODES:
            raise Failure("invalid_arguments", f"there is no mode {mode!r}", hint=f"the modes are {', '.join(MODES)}")
        with ExitStack() as alone:
            try:
                alone.enter_context(self._alone())
            except Failure:
                # Whoever holds the lock must not keep anyone from a lockdown.
                if mode != "LOCKDOWN":
                    raise
            before, now = self._switched(mode, by, cause)
        self._changed(before, now)
        return now

    def _switched(self, mode: Mode, by: str, cause: str) -> tuple[Standing, Standing]:
        now = self.standing()
        if mode != now.mode and mode not in NEXT[now.mode]:
            raise Failure(
                "invalid_arguments",
                f"{now.mode} can't be left for {mode}",
                hint=f"it can be left for {', '.join(NEXT[now.mode])}",
            )
        standing = Standing(mode, _now(), by, cause)
        # What can't be written down is no change, but for a lockdown: that holds here all the same.
        try:
            self._write(standing)
        except Failure:
            if mode == "LOCKDOWN":
                self._standing = standing
                self._changed(now, standing)
            raise
        self._standing = standing
        return now, standing

    def violation(self) -> None:
        """Count an attempt to leave the workspace's bounds; too many raise `ALERT`."""
        now = self._clock()
        self._violations.append(now)
        while self._violations and self._violations[0] < now - self._thresholds.violation_seconds:
            self._violations.popleft()
        if len(self._violations) >= self._thresholds.violations:
            count = len(self._violations)
            self._violations.clear()
            seconds = self._thresholds.violation_seconds
            self._by_itself("ALERT", f"{count} attempts to leave the workspace within {seconds:g} s")

    def look(self) -> None:
        """Look at disk and memory, if it is time to, and go to `DEGRADED` or back."""
        now = self._clock()
        if now - self._looked < self._thresholds.look_seconds:
            return
        self._looked = now
        try:
            disk, memory = self._free()
        except (OSError, ImportError):
            return
        t, mode = self._thresholds, self.mode
        if mode == "NORMAL" and disk < t.disk_free_mb:
            self._by_itself("DEGRADED", f"{disk:.0f} MiB of the disk are left")
        elif mode == "NORMAL" and memory < t.memory_available:
            self._by_itself("DEGRADED", f"{memory:.1%} of the memory are left")
        elif mode == "DEGRADED" and disk >= t.disk_free_again_mb and memory >= t.memory_available_again:
            if self.standing().by == "albert":
                self._by_itself("NORMAL", "there is room again")

    def _measured(self) -> tuple[float, float]:
        import psutil

        place = self._file.parent if self._file is not None else Path.cwd()
        while not place.exists():
            place = place.parent
        memory = psutil.virtual_memory()
        return psutil.disk_usage(str(place)).free / 2**20, memory.available / memory.total

    def _by_itself(self, mode: Mode, cause: str) -> None:
        try:
            with self._alone():
                change = self._stepped(mode, cause, keep=True)
        except Failure:
            change = self._stepped(mode, cause, keep=False)
        if change is not None:
            self._changed(*change)

    def _stepped(self, mode: Mode, cause: str, keep: bool) -> tuple[Standing, Standing] | None:
        # Only now: a person's lockdown of a moment ago must not be written over.
        before = self.standing()
        if (before.mode, mode) not in _BY_ITSELF:
            return None
        self._standing = now = Standing(mode, _now(), "albert", cause)
        if keep:
            # What can't be written down holds in this process all the same.
            with suppress(Failure):
                self._write(now)
        return before, now

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While the mode is read and written, no other process writes it.

        Raises:
            Failure: `io_error`: the lock can't be had, or not within `_LOCK_SECONDS`.
        """
        if self._file is None or fcntl is None:
            yield
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            lock = os.open(self._file.with_name(f".{self._file.name}-lock"), flags, 0o600)
        except OSError as error:
            raise _unwritten(self._file, error) from error
        try:
            given_up = time.monotonic() + _LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if time.monotonic() > given_up:
                        raise _unwritten(self._file, error) from error
                time.sleep(0.01)
            yield
        finally:
            os.close(lock)

    def _write(self, standing: Standing) -> None:
        if self._file is not None:
            _write(self._file, standing)
            with suppress(OSError):
                self._seen = _stamp(os.stat(self._file))

    def _changed(self, before: Standing, now: Standing) -> None:
        if before.mode != now.mode:
            self._tell(before, now)
            self._record(before, now)

    def _record(self, before: Standing, now: Standing) -> None:
        if self._ledger is not None:
            # What can't be written down must not keep anyone from a lockdown.
            with suppress(Failure):
                data = {"from": before.mode, "to": now.mode, "by": now.by, "cause": now.cause}
                self._ledger.durable(self._ledger.append("mode", data))

    def _tell(self, before: Standing, now: Standing) -> None:
        for listener in self._listeners:
            listener(before, now)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _stamp(facts: os.stat_result) -> tuple[int, int, int]:
    """What a change of the file changes; the time of its inode too, which nobody can set back."""
    return facts.st_ino, facts.st_ctime_ns, facts.st_size


def _unwritten(file: Path, error: OSError) -> Failure:
    return Failure("io_error", f"the mode can't be written to {str(file)!r}: {error.strerror}")


def _unknown(why: str) -> Standing:
    return Standing("LOCKDOWN", "", "albert", f"the mode can't be read: {why}")


def _read(file: Path) -> Standing:
    try:
        with open(file, "rb") as opened:
            document = json.loads(opened.read(_MAX_BYTES))
        standing = Standing(*(document[name] for name in Standing._fields))
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        return _unknown(str(error) or type(error).__name__)
    if standing.mode not in MODES or not all(isinstance(part, str) for part in standing):
        return _unknown(f"{standing.mode!r} is no mode")
    return standing


def _write(file: Path, standing: Standing) -> None:
    temporary = file.with_name(f".{file.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(temporary, "x", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as opened:
            opened.write(json.dumps(standing._asdict(), indent=1) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(temporary, file)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise _unwritten(file, error) from error
