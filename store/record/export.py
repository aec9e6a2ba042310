"""The chain of entries as text, to store it elsewhere.

Each line is the hash of an entry in hex, a space, and the text that was hashed (`entry.text_of`). The hash is BLAKE3 over the 32
bytes of the hash in the line before and this text; before entry 1, these are zeros. So any program with BLAKE3 can check the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from albert_tools.store.record.clock import text_of as time_of
from albert_tools.store.record.entry import chained, text_of
from albert_tools.store.record.gate import START
from albert_tools.store.record.record import Record

#: How many entries are read at once.
_BATCH = 1000
_NUMBER = re.compile(r'\{"n":([1-9][0-9]{0,18}),')
_QUERY = f"SELECT n, at, kind, data, hash FROM entries WHERE n > ? AND at >= ? ORDER BY n LIMIT {_BATCH}"


def exported(record: Record, since: datetime | None = None) -> Iterator[str]:
    """The lines of the entries from the first one at or after `since`. Raises Failure `io_error`, `damaged`."""
    last, earliest = 0, "" if since is None else time_of(since)
    while rows := record.database.rows(_QUERY, (last, earliest)):
        for last, at, kind, data, digest in rows:
            yield f"{digest.hex()} {text_of(last, at, kind, data)}"
        earliest = ""  # Later entries may have earlier times, from a process whose clock is slow.


class CheckedFile(NamedTuple):
    """The result of checking exported lines."""

    #: How many lines follow from the lines before them.
    intact: int
    #: The number of the first line that doesn't; None if all do.
    wrong_line: int | None
    #: The number of the first entry. If it isn't 1, this entry can't be checked.
    first: int | None


def checked_lines(lines: Iterable[str]) -> CheckedFile:
    """Check exported lines."""
    before = first = None
    number = 0
    for number, line in enumerate(lines, 1):
        stated, _, text = line.rstrip("\n").partition(" ")
        if first is None:
            match = _NUMBER.match(text)
            if match is None:
                return CheckedFile(0, number, None)
            first = int(match[1])
            before = START.hash if first == 1 else None
        try:
            if before is not None and chained(before, text).hex() != stated:
                return CheckedFile(number - 1, number, first)
            before = bytes.fromhex(stated)
        except ValueError:
            return CheckedFile(number - 1, number, first)
    return CheckedFile(number, None, first)
