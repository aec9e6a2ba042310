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
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.definition import MODES, Mode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger

#: Where each mode can be left for. Who may do it is another question: a service only does what `_BY_ITSELF` says.
NEXT: dict[Mode, tuple[Mode, ...]] = {
    "NORMAL": ("ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"),
    "ALERT": ("NORMAL", "DEGRADED", "LOCKDOWN", "RECOVERY"),
    "DEGRADED": ("NORMAL", "ALERT", "LOCKDOWN", "RECOVERY"),
    "LOCKDOWN": ("RECOVERY",),
    "RECOVERY": ("NORMAL", "ALERT", "DEGRADED", "LOCKDOWN"),
}
_BY_ITSELF = {("NORMAL", "ALERT"), ("NORMAL", "DEGRADED"), ("DEGRADED", "NORMAL")}

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
            seen, standing = None, Standing()
        except OSError as error:
            seen, standing = (0, 0, 0), _unknown(error.strerror or "it can't be reached")
        else:
            seen = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
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
        now = self.standing()
        if mode not in MODES:
            raise Failure("invalid_arguments", f"there is no mode {mode!r}", hint=f"the modes are {', '.join(MODES)}")
        if mode != now.mode and mode not in NEXT[now.mode]:
            raise Failure(
                "invalid_arguments",
                f"{now.mode} can't be left for {mode}",
                hint=f"it can be left for {', '.join(NEXT[now.mode])}",
            )
        return self._put(Standing(mode, datetime.now(UTC).isoformat(timespec="seconds"), by, cause))

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
        if (self.mode, mode) in _BY_ITSELF:
            # What can't be written down holds in this process all the same.
            with suppress(Failure):
                self._put(Standing(mode, datetime.now(UTC).isoformat(timespec="seconds"), "albert", cause))

    def _put(self, standing: Standing) -> Standing:
        before, self._standing = self._standing, standing
        if before.mode != standing.mode:
            self._tell(before, standing)
            self._record(before, standing)
        if self._file is not None:
            _write(self._file, standing)
            with suppress(OSError):
                facts = os.stat(self._file)
                self._seen = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        return standing

    def _record(self, before: Standing, now: Standing) -> None:
        if self._ledger is not None:
            # What can't be written down must not keep anyone from a lockdown.
            with suppress(Failure):
                data = {"from": before.mode, "to": now.mode, "by": now.by, "cause": now.cause}
                self._ledger.durable(self._ledger.append("mode", data))

    def _tell(self, before: Standing, now: Standing) -> None:
        for listener in self._listeners:
            listener(before, now)


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
        raise Failure("io_error", f"the mode can't be written to {str(file)!r}: {error.strerror}") from error
