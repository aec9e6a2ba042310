"""Finds the references in the record and in artifacts. `Contents.collect` must retain the values that they refer to.

Everything that looks like a reference counts, whatever the text means. A false match only retains a value that could be deleted. If
anything can't be read, the search fails, and no value is deleted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from albert_tools.store.os_errors import io_failure

_REF = re.compile(r"b3:[0-9a-f]{64}")


def named(*sources: Iterable[str]) -> set[str]:
    """The references in texts: those of `Record.texts`, and of the artifacts.

    Raises:
        Failure: as the sources.
    """
    return {ref for source in sources for text in source for ref in _REF.findall(text)}


def texts_in(folder: Path) -> Iterator[str]:
    """The texts of all files below `folder`, which may be missing.

    Raises:
        Failure: `io_error`.
    """
    return map(_read, _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise io_failure("list the files in", folder, error) from error

    for place, _, names in os.walk(folder, onerror=refuse):
        for name in names:
            yield Path(place) / name


def _read(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise io_failure("read the file", path, error) from error
