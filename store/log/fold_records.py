"""What the folded segments of a log say of the segments that they replaced."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.store.log import line
from albert_tools.store.log.lines import lines
from albert_tools.store.log.segment import is_folded, open_segment, path_of, segments
from albert_tools.store.os_errors import io_failure


class Record(NamedTuple):
    """A segment that was folded: its last line's number and hash, and the segment that continued it."""

    n: int
    hash: str
    next: str | None = None


def recorded(folder: Path, name: str) -> dict[str, Record]:
    """What a folded segment has taken the place of; nothing where it is no folded one.

    Raises:
        Failure: `damaged`, `io_error`.
    """
    found: dict[str, Record] = {}
    if not is_folded(name):
        return found
    digest = line.NOTHING
    try:
        handle = open_segment(folder, name)
        try:
            for n, (_, content, whole) in enumerate(lines(handle)):
                if not whole:
                    break
                digest, text = line.proved(digest, content)
                if n == 0:
                    continue
                fields = line.fields(text)
                if fields.get("kind") != line.FOLDED:
                    break
                found |= {source: Record(*record) for source, record in fields["segments"].items()}
        finally:
            os.close(handle)
    except (line.Malformed, TypeError, KeyError, AttributeError) as error:
        raise Failure("damaged", f"the fold records of the segment {name} can't be read: {error}") from error
    except OSError as error:
        raise io_failure("read the log's segment", path_of(folder, name), error) from error
    return found


def what_was_folded(folder: Path) -> dict[str, Record]:
    """All segments that were ever folded here. Raises as `recorded`."""
    found: dict[str, Record] = {}
    with suppress(OSError):
        for name in segments(folder)[0]:
            found |= recorded(folder, name)
    return found
