"""The mode of the whole installation, and its changes.

The mode is stored in one small file of the home. Every process reads the file at its next call and so sees a change. Usually a
person switches the mode. Two changes are automatic: from `NORMAL` to `ALERT` (too many violations), and between `NORMAL` and
`DEGRADED` (disk or memory nearly full). Only a person can leave `LOCKDOWN`, and only to `RECOVERY`. If the file can't be read or is
invalid, the mode is `LOCKDOWN` (fail closed).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.definition import MODES, Mode
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import FolderFile, HomeFile, Stamp
from albert_tools.engine.model.protocols import Record
from albert_tools.engine.model.record_types import ESCAPES

#: The modes that can follow each mode. A service itself makes only the changes in `_AUTOMATIC`.
NEXT: dict[Mode, tuple[Mode, ...]] = {
    "NORMAL": ("ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"),
    "ALERT": ("NORMAL", "DEGRADED", "LOCKDOWN", "RECOVERY"),
    "DEGRADED": ("NORMAL", "ALERT", "LOCKDOWN", "RECOVERY"),
    "LOCKDOWN": ("RECOVERY",),
    "RECOVERY": ("NORMAL", "ALERT", "DEGRADED", "LOCKDOWN"),
}
_AUTOMATIC = {("NORMAL", "ALERT"), ("NORMAL", "DEGRADED"), ("DEGRADED", "NORMAL")}

#: The most bytes that are read of the file. A valid file is much shorter.
_MAX_BYTES = 8192
#: A stamp that no file has.
_NO_STAMP: Stamp = (0, 0, 0, 0)


#: Free MiB on the disk with the state folder, and available memory as a fraction of all memory: thresholds for leaving `NORMAL`,
#: and higher ones for returning, so the mode doesn't alternate.
_DISK_FREE, _DISK_FREE_AGAIN = 100.0, 200.0
_MEMORY_FREE, _MEMORY_FREE_AGAIN = 0.03, 0.06
#: The number of attempts to leave the workspace within these seconds that switches to `ALERT`.
_VIOLATIONS, _VIOLATION_SECONDS = 20, 60.0
#: Seconds between two checks of disk and memory.
_LOOK_SECONDS = 10.0


class ModeState(NamedTuple):
    """The mode, the time of its last change (ISO 8601, UTC), who changed it, and why."""

    mode: Mode = "NORMAL"
    since: str = ""
    by: str = ""
    cause: str = ""


def mode_named(name: str) -> Mode:
    """The mode of a name. Raises Failure `invalid_arguments`."""
    for mode in MODES:
        if mode == name:
            return mode
    raise Failure("invalid_arguments", f"there is no mode {name!r}", hint=f"the modes are {', '.join(MODES)}")


class Modes:
    """The mode of one home. Safe to use from any thread and from several processes."""

    def __init__(
        self,
        file: Path | HomeFile | None,
        clock: Callable[[], float] = time.monotonic,
        ledger: Record | None = None,
        free: Callable[[], tuple[float, float]] | None = None,
        wall_clock: Callable[[], float] = time.time,
        folder: Path | None = None,
    ) -> None:
        """Args:
        file: The file with the mode; None stores the mode only in this process.
        clock: Returns seconds.
        ledger: Gets an entry for each change that this object makes, and counts the attempts to leave the workspace.
        free: Returns the free MiB of the disk and the available fraction of memory.
        wall_clock: Returns seconds since 1970, which are equal in all processes.
        folder: The folder on this machine whose disk is measured, if machines share the file. A disk or memory that is nearly full
            then changes the mode of this process only.
        """
        self._file: HomeFile | None = FolderFile(file) if isinstance(file, Path) else file
        self._folder = file.parent if isinstance(file, Path) else folder
        self._is_shared = folder is not None
        self._clock = clock
        self._ledger = ledger
        self._free = free or self._measured
        self._seen: Stamp | None = None
        self._was_there = False
        self._state = ModeState()
        self._time = wall_clock
        self._looked = -1e9

    @property
    def mode(self) -> Mode:
        """The current mode."""
        return self.state().mode

    def state(self) -> ModeState:
        """The current mode with its last change."""
        if self._file is None:
            return self._state
        try:
            seen = self._stamp(self._file)
        except Failure as failure:
            seen, state = _NO_STAMP, _unknown(failure.message)
        else:
            # Albert never deletes the file. So if the file disappears, the mode doesn't return to `NORMAL`.
            if seen is None and self._was_there and self._state.mode != "NORMAL":
                seen, state = _NO_STAMP, _unknown("its file is gone")
            elif seen == self._seen:
                # Without a file, a mode that couldn't be stored applies to this process.
                return self._state
            else:
                state = _read(self._file)
        self._state, self._seen = state, seen
        return state

    def switch(self, mode: Mode, by: str, cause: str) -> ModeState:
        """Change the mode on behalf of a person.

        Raises:
            Failure: `invalid_arguments` for an unknown mode or one that can't follow the present one; `io_error`.
        """
        mode = mode_named(mode)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locked())
            except Failure:
                # If another process has the lock, a lockdown must still be possible.
                if mode != "LOCKDOWN":
                    raise
            before, now = self._switched(mode, by, cause)
        self._changed(before, now)
        return now

    def _switched(self, mode: Mode, by: str, cause: str) -> tuple[ModeState, ModeState]:
        now = self.state()
        if mode != now.mode and mode not in NEXT[now.mode]:
            raise Failure(
                "invalid_arguments",
                f"the mode can't change from {now.mode} to {mode}",
                hint=f"from {now.mode} it can change to {', '.join(NEXT[now.mode])}",
            )
        state = ModeState(mode, _now(), by, cause)
        # A change that can't be stored fails. A lockdown still applies to this process.
        try:
            self._write(state)
        except Failure:
            if mode == "LOCKDOWN":
                self._state = state
                self._changed(now, state)
            raise
        self._state = state
        return now, state

    def violation(self) -> None:
        """Count an attempt to leave the workspace, by any process of the home. Too many attempts switch the mode to `ALERT`."""
        ledger = self._ledger
        if ledger is None:
            return
        now = self._time()
        # If the record can't be written, every call is denied.
        with suppress(Failure):
            ledger.append("escape", {"windows": [ESCAPES], "sessions": [], "clock": now})
            times, since = ledger.uses.times("", ESCAPES, _VIOLATIONS), self.state().since
            # Attempts before the last change don't count again. Its time has no fraction of a second.
            changed = datetime.fromisoformat(since).timestamp() + 1 if since else 0.0
            if times is not None and times[1] is not None and max(now - _VIOLATION_SECONDS, changed) <= times[1] <= now:
                self._automatic(
                    "ALERT", f"{_VIOLATIONS} attempts to leave the workspace within {_VIOLATION_SECONDS:g} s"
                )

    def look(self) -> None:
        """Check disk and memory, and switch to `DEGRADED` or back. Does nothing if the last check was less than
        `_LOOK_SECONDS` ago."""
        now = self._clock()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        try:
            disk, memory = self._free()
        except (OSError, ImportError):
            return
        mode = self.mode
        if mode == "NORMAL" and disk < _DISK_FREE:
            self._automatic("DEGRADED", f"{disk:.0f} MiB of disk are free", not self._is_shared)
        elif mode == "NORMAL" and memory < _MEMORY_FREE:
            self._automatic("DEGRADED", f"{memory:.1%} of memory is available", not self._is_shared)
        elif mode == "DEGRADED" and disk >= _DISK_FREE_AGAIN and memory >= _MEMORY_FREE_AGAIN:
            if self.state().by == "albert":
                self._automatic("NORMAL", "disk and memory have room again", not self._is_shared)

    def _measured(self) -> tuple[float, float]:
        place = self._folder or Path.cwd()
        while not place.exists():
            place = place.parent
        disk = os.statvfs(place)
        return disk.f_bavail * disk.f_frsize / 2**20, _memory_available()

    def _automatic(self, mode: Mode, cause: str, store: bool = True) -> None:
        try:
            with self._locked():
                change = self._stepped(mode, cause, store)
        except Failure:
            change = self._stepped(mode, cause, store=False)
        if change is not None:
            self._changed(*change)

    def _stepped(self, mode: Mode, cause: str, store: bool) -> tuple[ModeState, ModeState] | None:
        # Read the mode under the lock, so that a lockdown that a person has just ordered isn't overwritten.
        before = self.state()
        if (before.mode, mode) not in _AUTOMATIC:
            return None
        self._state = now = ModeState(mode, _now(), "albert", cause)
        if store:
            # If a change can't be stored, it still applies to this process.
            with suppress(Failure):
                self._write(now)
        return before, now

    def _locked(self) -> AbstractContextManager[None]:
        """Lock the mode against other writers while it is read and written. Raises Failure `io_error`."""
        return nullcontext() if self._file is None else self._file.locked()

    def _write(self, state: ModeState) -> None:
        if self._file is not None:
            self._file.write(f"{json.dumps(state._asdict(), indent=1)}\n".encode())
            with suppress(Failure):
                self._seen = self._stamp(self._file)

    def _stamp(self, file: HomeFile) -> Stamp | None:
        stamp = file.stamp()
        self._was_there = self._was_there or stamp is not None
        return stamp

    def _changed(self, before: ModeState, now: ModeState) -> None:
        if before.mode != now.mode and self._ledger is not None:
            # If the ledger can't be written, a lockdown must still be possible.
            with suppress(Failure):
                data = {"from": before.mode, "to": now.mode, "by": now.by, "cause": now.cause}
                self._ledger.durable(self._ledger.append("mode", data))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _memory_available() -> float:
    """The share of memory that is available, 0 to 1.

    Raises:
        OSError, ImportError: it can't be measured.
    """
    if sys.platform != "linux":
        import psutil

        memory = psutil.virtual_memory()
        return float(memory.available / memory.total)
    with open("/proc/meminfo") as file:
        sizes = {line.partition(":")[0]: int(line.split()[1]) for line in file}
    return sizes["MemAvailable"] / sizes["MemTotal"]


def _unknown(why: str) -> ModeState:
    return ModeState("LOCKDOWN", "", "albert", f"the mode can't be read: {why}")


def _read(file: HomeFile) -> ModeState:
    try:
        content = file.read()
        if content is None:
            return ModeState()
        document = json.loads(content[:_MAX_BYTES])
        state = ModeState(*(document[name] for name in ModeState._fields))
    except (Failure, ValueError, TypeError, KeyError, RecursionError) as error:
        return _unknown(str(error) or type(error).__name__)
    if state.mode not in MODES or not all(isinstance(part, str) for part in state):
        return _unknown(f"{state.mode!r} is not a mode")
    return state
