"""A segment: the file that one process writes, and nobody else.

Its name is the time it was begun, the writer's process id and some randomness, so that names sort by time and never
meet. The writer keeps an exclusive `flock` on it while it lives; the system lets go of the lock when the process ends,
however it ends, so a segment whose lock can be had has no writer any more.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from albert_tools.store.locks import lock
from albert_tools.store.log.line import NOTHING

FILE_MODE = 0o600
SUFFIX = ".log"
#: Whoever decides by what stands in the log holds a lock on this file (`exclusive`).
LOCK = ".lock"
#: Those who fold the log do so one at a time; who lists it shares the second lock, which they hold for the moment of the switch.
TURN, SWITCH = ".fold-turn", ".fold-switch"
#: What a folded segment that is about to be there takes the place of; and how the names begin of what isn't in its place yet.
MARKER, NEW_FOLD = ".folding", ".fold-new-"
#: Seconds. Who only asks whether a writer lives holds its lock for an instant; for this long, a stopped process does.
LOCK_PATIENCE = 5.0
#: Time in UTC to the microsecond, process id, randomness.
SEGMENT = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)\.(\d{6})Z-\d+-[0-9a-f]{8}\Z")


def folded_name(at: str) -> str:
    """A new folded segment's id: no process has the number 0."""
    return f"{at.replace('-', '').replace(':', '')}-0-{secrets.token_hex(4)}"


def is_folded(segment: str) -> bool:
    """Whether a segment's id is a folded one's."""
    return segment[-11:-8] == "-0-"


def segment_name(at: str) -> str:
    """A new segment's id, begun `at` (ISO 8601)."""
    return f"{at.replace('-', '').replace(':', '')}-{os.getpid()}-{secrets.token_hex(4)}"


def begun(segment: str) -> str:
    """When a segment was begun, as its entries write it; none of them is earlier."""
    match = SEGMENT.match(segment)
    if match is None:
        raise ValueError(f"{segment!r} is not a segment's id")
    year, month, day, hour, minute, second, micro = match.groups()
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}.{micro}Z"


def path_of(folder: Path, segment: str) -> Path:
    """The file of a segment. The id must have been checked against `SEGMENT`."""
    return folder / (segment + SUFFIX)


def segments(folder: Path) -> tuple[list[str], list[str]]:
    """The ids of all segments in `folder`, in order, and the names of other things there.

    Raises:
        OSError: as the system says.
    """
    found: list[str] = []
    strange: list[str] = []
    names, gone = _listed(folder)
    for name in names:
        if name in _OURS or name.startswith(NEW_FOLD):
            continue
        segment = name.removesuffix(SUFFIX)
        (found if segment != name and SEGMENT.match(segment) else strange).append(name)
    return sorted({name.removesuffix(SUFFIX) for name in found} - gone), sorted(strange)


_OURS = frozenset({LOCK, TURN, SWITCH, MARKER})


def _listed(folder: Path) -> tuple[list[str], frozenset[str]]:
    """The names in `folder`, and the segments among them that count as gone: as before a switch, or as behind it."""
    while True:
        try:
            handle = os.open(folder / SWITCH, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            names = os.listdir(folder)
            if not os.path.lexists(folder / SWITCH):
                # Nothing was ever folded here by now.
                return names, frozenset()
            continue
        try:
            # Held for milliseconds, by whoever folds.
            fcntl.flock(handle, fcntl.LOCK_SH)
            names = os.listdir(folder)
            return names, superseded(folder) if MARKER in names else frozenset()
        finally:
            os.close(handle)


def superseded(folder: Path) -> frozenset[str]:
    """The segments that count as gone, since a folded one has taken their place, though they are there still.

    Raises:
        OSError: as the system says; also for a marker that can't be read.
    """
    try:
        found = msgspec.json.decode((folder / MARKER).read_bytes())
        into, gone = found["into"], frozenset(found["segments"])
    except FileNotFoundError:
        return frozenset()
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
        raise OSError(f"the marker {folder / MARKER} can't be read") from error
    return gone if os.path.lexists(path_of(folder, into)) else frozenset()


def open_segment(folder: Path, segment: str) -> int:
    """A handle to read a segment with; a link, a pipe or a folder in its place is refused.

    Raises:
        OSError: as the system says.
    """
    handle = os.open(path_of(folder, segment), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("not a regular file")
    return handle


def alive(handle: int) -> bool:
    """Whether the segment's writer lives."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    return False


@dataclass(slots=True)
class Segment:
    """A segment under writing: its handle, its size in bytes, and its last entry's number and hash."""

    name: str
    path: Path
    handle: int
    size: int = 0
    n: int = -1
    hash: bytes = NOTHING

    @classmethod
    def create(cls, folder: Path, at: str) -> Segment:
        """A new, empty, locked one.

        Raises:
            OSError: as the system says, when it can't be made.
            Failure: `io_error` when it can't be locked; retryable when somebody else holds the lock for too long. The
                file stays, empty: whoever has seen it would take its absence for tampering.
        """
        name = segment_name(at)
        path = path_of(folder, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags, FILE_MODE)
        try:
            # Readers who ask whether its writer lives hold it for an instant.
            late = f"timed out after {LOCK_PATIENCE:g} s waiting for another process that holds the log's new segment {path}"
            lock(
                handle,
                path,
                LOCK_PATIENCE,
                late,
                "end the process that holds the lock (`fuser` names it) and try again",
            )
        except BaseException:
            os.close(handle)
            raise
        return cls(name, path, handle)

    def retire(self) -> None:
        """Let go of the lock and the handle. No sync may be under way."""
        # Explicitly, because a child forked meanwhile shares the lock until it is let go of.
        with suppress(OSError):
            fcntl.flock(self.handle, fcntl.LOCK_UN)
        os.close(self.handle)
