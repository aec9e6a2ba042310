"""The logs of systems: systemd's journal, syslog files, and macOS's unified log.

The journal and macOS's log are read through the system's own programs, `journalctl` and `log`. Their arguments are fixed, except
for the name of a unit, which cannot contain special characters of these programs. Files are read backwards in blocks, because a
call returns the newest entries. The owner can set the files (``primitives.read_system_logs.files``); otherwise the usual files are
read.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from albert_tools.builtins.system.log_entry import LogEntry
from albert_tools.builtins.system.program_output import MAX_LINE, found, lines_of
from albert_tools.engine.model.failure import Failure

#: Log files of systems without a journal.
SYSLOG_FILES = ("/var/log/syslog", "/var/log/messages", "/var/log/system.log")
#: Folders of systemd's journal.
JOURNALS = ("/var/log/journal", "/run/log/journal")
_BLOCK = 64 * 1024
#: Severities by number (RFC 5424, 6.2.1).
LEVELS = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")
_MACOS_LEVELS = {"fault": "critical", "error": "error", "default": "notice", "info": "info", "debug": "debug"}

_RFC3164 = re.compile(r"(?:<(?P<pri>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<rest>.*)", re.DOTALL)
_ISO8601 = re.compile(
    r"(?:<(?P<pri>\d{1,3})>(?:1 )?)?"
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?\d*(?:Z|[+-]\d\d:?\d\d)) (?P<rest>.*)",
    re.DOTALL,
)
_FROM = re.compile(r"\S+ (?P<unit>[^\s:\[]{1,256})(?:\[(?P<pid>\d{1,10})\])?: ?(?P<message>.*)", re.DOTALL)


class Log(Protocol):
    """A log that can be read."""

    @property
    def name(self) -> str:
        """The name of the log in results."""

    @property
    def newest_first(self) -> bool:
        """Whether the newest entries come first."""

    def entries(self, since: float, unit: str) -> AsyncGenerator[LogEntry, None]:
        """The entries since a time (seconds since 1970). If `unit` is not empty, only entries of that unit. Raises OSError."""


def find_log(source: str, settings: Mapping[str, Any]) -> Log:
    """Returns the log `source` of this machine. "auto" means the log that the machine has.

    Raises:
        Failure: `not_found`.
    """
    files = settings.get("files")
    chosen = [f for f in files if isinstance(f, str)] if isinstance(files, list) else []
    if source in ("auto", "macos") and sys.platform == "darwin" and not chosen and (program := found("log")):
        return MacOS(program)
    # If `source` is "auto", files that the owner names have priority over the journal.
    if source in ("auto", "journald") and not (chosen and source == "auto"):
        program = found("journalctl")
        if program is not None and any(_has_files(folder) for folder in JOURNALS):
            return Journald(program)
    if source in ("auto", "syslog"):
        file = next((path for path in chosen or SYSLOG_FILES if os.path.isfile(path)), None)
        if file is not None:
            return Syslog(file)
    raise Failure(
        "not_found",
        "no log was found on this machine" if source == "auto" else f"this machine has no {source} log",
        hint="the owner can name log files: `primitives: {read_system_logs: {files: [/var/log/…]}}` in governance.yaml",
    )


def _has_files(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return False


class Journald:
    """systemd's journal, by ``journalctl -o json``."""

    name = "journald"
    newest_first = True

    def __init__(self, program: str) -> None:
        self._program = program

    async def entries(self, since: float, unit: str) -> AsyncGenerator[LogEntry, None]:
        """As `Log`."""
        argv = [self._program, "-o", "json", "--no-pager", "--quiet", "--reverse", "--all", f"--since=@{int(since)}"]
        if unit:
            argv.append(f"--unit={unit}" if "." in unit else f"--identifier={unit}")
        async with aclosing(lines_of(argv)) as lines:
            async for line in lines:
                entry = journal_entry(line)
                if entry is not None:
                    yield entry


def journal_entry(line: bytes) -> LogEntry | None:
    """Parse an entry of ``journalctl -o json``. A field is text, a list of bytes if it is not UTF-8, or null if it is large."""
    document = _object(line)
    if document is None:
        return None
    micros, priority, pid = (_number(document.get(k)) for k in ("__REALTIME_TIMESTAMP", "PRIORITY", "_PID"))
    unit = (
        _text(document.get("_SYSTEMD_UNIT")) or _text(document.get("SYSLOG_IDENTIFIER")) or _text(document.get("_COMM"))
    )
    return {
        "time": None if micros is None else _iso(micros / 1_000_000),
        "unit": unit[:256] or None,
        "level": LEVELS[priority] if priority is not None and 0 <= priority < len(LEVELS) else None,
        "pid": pid,
        "message": _text(document.get("MESSAGE")),
    }


class MacOS:
    """macOS' unified log, by ``log show --style ndjson``."""

    name = "macos"
    newest_first = False

    def __init__(self, program: str) -> None:
        self._program = program

    async def entries(self, since: float, unit: str) -> AsyncGenerator[LogEntry, None]:
        """As `Log`."""
        start = datetime.fromtimestamp(since).strftime("%Y-%m-%d %H:%M:%S")
        argv = [self._program, "show", "--style", "ndjson", "--start", start]
        if unit:
            # A unit contains no quotes, and backslashes are removed, so the unit can't end the string of the query.
            argv += ["--predicate", 'process == "{}"'.format(unit.replace("\\", ""))]
        async with aclosing(lines_of(argv)) as lines:
            async for line in lines:
                entry = macos_entry(line)
                if entry is not None:
                    yield entry


def macos_entry(line: bytes) -> LogEntry | None:
    """Parse an entry of ``log show --style ndjson``; None for its last line, which has the count."""
    document = _object(line)
    if document is None or "eventMessage" not in document:
        return None
    try:
        moment = datetime.strptime(_text(document.get("timestamp")), "%Y-%m-%d %H:%M:%S.%f%z")
    except ValueError:
        moment = None
    return {
        "time": None if moment is None else _iso(moment.timestamp()),
        "unit": _text(document.get("processImagePath")).rpartition("/")[2][:256] or None,
        "level": _MACOS_LEVELS.get(_text(document.get("messageType")).lower()),
        "pid": _number(document.get("processID")),
        "message": _text(document.get("eventMessage")),
    }


class Syslog:
    """A syslog file, with times as in RFC 3164 or in ISO 8601, read from its end."""

    name = "syslog"
    newest_first = True

    def __init__(self, path: str) -> None:
        self._path = path

    async def entries(self, since: float, unit: str) -> AsyncGenerator[LogEntry, None]:
        """As `Log`."""
        import asyncio

        handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError("it is not a regular file")
            parse = SyslogLines(datetime.now().astimezone())
            for n, line in enumerate(_backwards(file)):
                if n % 1000 == 0:
                    # Let a cancellation or a timeout take effect.
                    await asyncio.sleep(0)
                moment, entry = parse.entry(line.decode("utf-8", "replace"))
                if moment is not None and moment < since:
                    return
                if not unit or entry["unit"] == unit:
                    yield entry


class SyslogLines:
    """Parses lines from newest to oldest.

    Times in RFC 3164 have no year: the parser takes the latest year that preserves the order.
    """

    def __init__(self, now: datetime) -> None:
        self._latest = now + timedelta(days=1)

    def entry(self, line: str) -> tuple[float | None, LogEntry]:
        """Returns the time of a line (seconds since 1970) and its entry. If the form is unknown, the entry has only a message."""
        match = _ISO8601.match(line) or _RFC3164.match(line)
        if match is None:
            return None, {"time": None, "unit": None, "level": None, "pid": None, "message": line}
        moment = self._moment(match["time"])
        priority = int(match["pri"]) % 8 if match["pri"] else None
        parts = _FROM.match(match["rest"])
        return (
            None if moment is None else moment.timestamp(),
            {
                "time": None if moment is None else _iso(moment.timestamp()),
                "unit": parts["unit"] if parts else None,
                "level": None if priority is None else LEVELS[priority],
                "pid": int(parts["pid"]) if parts and parts["pid"] else None,
                "message": parts["message"] if parts else match["rest"],
            },
        )

    def _moment(self, text: str) -> datetime | None:
        try:
            if text[0].isdigit():
                return datetime.fromisoformat(text)
            for year in (self._latest.year, self._latest.year - 1):
                # Parse the time together with the year. Without a year, the 29th of February is invalid.
                moment = datetime.strptime(f"{year} {text}", "%Y %b %d %H:%M:%S").replace(tzinfo=self._latest.tzinfo)
                if moment <= self._latest:
                    # Lines are at most a day out of order.
                    self._latest = moment + timedelta(days=1)
                    return moment
        except ValueError:
            pass
        return None


def _backwards(file: Any) -> Iterator[bytes]:
    """Yields the lines of a file, last line first. The beginning of a line over `MAX_LINE` bytes is dropped."""
    position = file.seek(0, os.SEEK_END)
    rest, last = b"", True
    while position > 0:
        size = min(_BLOCK, position)
        position -= size
        file.seek(position)
        block = file.read(size)
        first, *whole = (block + rest).split(b"\n")
        for line in reversed(whole):
            if line or not last:
                yield line[:MAX_LINE]
            last = False
        rest = first if len(first) <= MAX_LINE else first[-MAX_LINE:]
    if rest:
        yield rest


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _text(value: Any) -> str:
    if isinstance(value, list) and all(type(b) is int and 0 <= b < 256 for b in value):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, list):
        # The field occurs several times.
        return "\n".join(_text(v) for v in value if isinstance(v, str))
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _iso(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    except (OverflowError, OSError, ValueError):
        return None
