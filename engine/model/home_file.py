"""A small file of a home that several processes read and write: its mode, its rules, its mounts."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.file_lock import open_locked, release
from albert_tools.engine.model.replace_file import make_folders, replace_file

#: Facts that change with a file; for a file in a folder: modification time and change time (ns), size (bytes), inode.
Stamp = tuple[int, int, int, int]

#: Seconds to wait for the lock while another process writes the file.
LOCK_SECONDS = 1.0


class HomeFile(Protocol):
    """A file of a home, in a folder or in a database. `str` names it in messages. All methods raise Failure `io_error`."""

    def stamp(self) -> Stamp | None:
        """Facts that change with the file; None if there is none."""

    def read(self) -> bytes | None:
        """The content; None if there is no file."""

    def write(self, content: bytes) -> None:
        """Replace the content, durably."""

    def locked(self) -> AbstractContextManager[None]:
        """A block in which no other process is inside such a block."""


class FolderFile:
    """The file at `path`. Its folder is created by the first lock or write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = str(path)

    def __str__(self) -> str:
        return self._name

    def stamp(self) -> Stamp | None:
        """See `HomeFile`."""
        try:
            facts = os.stat(self._name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failure("read", error) from error
        # Unlike the other times, the change time of an inode can't be set by a program.
        return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino

    def read(self) -> bytes | None:
        """See `HomeFile`."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failure("read", error) from error

    def write(self, content: bytes) -> None:
        """See `HomeFile`."""
        try:
            make_folders(self._path.parent)
            replace_file(self._path, content, self._path.with_name(f".{self._path.name}-{secrets.token_hex(8)}"))
        except OSError as error:
            raise self._failure("written", error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """See `HomeFile`. It waits at most `LOCK_SECONDS`."""
        try:
            make_folders(self._path.parent)
            handle = open_locked(self._path.with_name(f".{self._path.name}-lock"), LOCK_SECONDS)
        except OSError as error:
            raise self._failure("written", error) from error
        try:
            yield
        finally:
            release(handle)

    def _failure(self, use: str, error: OSError) -> Failure:
        return Failure("io_error", f"{self._name!r} can't be {use}: {error.strerror}")
