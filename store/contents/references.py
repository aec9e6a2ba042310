"""Finds the references in records. `Contents.collect` must retain the values that they refer to.

The log's segments, the runs' journals and the artifacts are searched as bytes for text that looks like a reference. So references
in torn, damaged or unknown lines are found too. A false match only retains a value that could be deleted. If a file can't be
read, the search fails, and no value is deleted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from albert_tools.store.os_errors import io_failure

_REF = re.compile(rb"b3:[0-9a-f]{64}")
_LENGTH = 67
_BLOCK = 1024 * 1024


def named(*folders: Path) -> set[str]:
    """The references in all files below `folders`: the log, the runs and the artifacts. Missing folders are skipped.

    Raises:
        Failure: `io_error`.
    """
    found: set[bytes] = set()
    for folder in folders:
        for path in _files(folder):
            try:
                _search(path, found)
            except FileNotFoundError:
                continue  # the journal of a run that was deleted meanwhile
            except OSError as error:
                raise io_failure("read the record at", path, error) from error
    return {ref.decode() for ref in found}


def _files(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise io_failure("list the records in", folder, error) from error

    for place, _, names in os.walk(folder, onerror=refuse):
        for name in names:
            yield Path(place) / name


def _search(path: Path, found: set[bytes]) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb", buffering=0) as file:
        rest = b""
        while block := file.read(_BLOCK):
            content = rest + block
            found.update(_REF.findall(content))
            rest = content[1 - _LENGTH :]
