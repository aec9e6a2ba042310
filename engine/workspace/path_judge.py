"""The interface through which a workspace checks the rules for one call.

Before the workspace opens or changes a file, it passes the real path, without links, to its judge. The judge refuses by raising a
`Failure`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, Protocol

#: What a call does with a path.
Use = Literal["read", "write", "delete"]


class Judge(Protocol):
    """The checks of a workspace. Paths are absolute and contain no link."""

    @property
    def max_file_bytes(self) -> int:
        """The most bytes of one file that the call may read or write."""

    @property
    def bytes_written(self) -> int:
        """The number of bytes that the call has written."""

    @property
    def selective(self) -> bool:
        """Whether the rules on the tool name paths in the workspace. Then the tool may see only a part of the workspace."""

    @property
    def private_path(self) -> str | None:
        """The first file with private data that the call has read."""

    def demand(self, path: str, use: Use) -> None:
        """Refuse a use of a path that the rules forbid."""

    def demand_not_forbidden(self, path: str) -> None:
        """Refuse a path that `forbidden_paths` name, and no other one."""

    def allows(self, path: str) -> bool:
        """Whether the rules allow reading a path."""

    def divides(self, folder: str) -> bool:
        """Whether the rules may allow reading one path below a folder and deny another one."""

    def unreadable(self, folder: str, names: Collection[str]) -> Collection[str]:
        """The names in a folder that the rules don't allow reading. `forbidden_paths` must not name the folder itself."""

    def forbidden_globs(self, top: str) -> Sequence[str]:
        """The forbidden paths below an allowed folder, as git's globs relative to it."""

    def note_opened(self, path: str) -> None:
        """Note that the call opens a file."""

    def note_visible(self, roots: Sequence[str], named: Iterable[str] = ()) -> None:
        """Note that a command may read all files below the folders `roots`, and those `named`, which git may have."""

    def writable(self) -> Sequence[str] | None:
        """The only paths in the workspace that the call may change, with everything below them; None if no rule lists them. A path
        that is certainly a folder ends with a slash."""

    def demand_going(self) -> None:
        """Raise `cancelled` if the call has ended."""

    def demand_approved(self, path: str, written: str, now: os.stat_result | None) -> None:
        """Refuse a change if the call has ended, or if the person approved a different state of the file.

        The workspace calls this immediately before the change. `now` is the `stat` result of the path, None if nothing exists
        there. `written` is the path as the call wrote it.
        """

    def changed(self, path: str) -> None:
        """Note that the call has changed the file at the path. The approval no longer describes its present state."""

    def count(self, size: int) -> None:
        """Count bytes before they are written. A negative size takes back bytes whose writing failed."""

    def end(self) -> None:
        """Mark the call as ended. A thread of the call that still runs can't change files any more."""


class AllowAll:
    """The judge without rules: it allows everything."""

    max_file_bytes = sys.maxsize
    bytes_written = 0
    selective = False
    private_path: str | None = None

    def demand(self, path: str, use: Use) -> None:
        """Allow every use."""

    def demand_not_forbidden(self, path: str) -> None:
        """Allow every path."""

    def allows(self, path: str) -> bool:
        """Always true."""
        return True

    def divides(self, folder: str) -> bool:
        """Always false."""
        return False

    def unreadable(self, folder: str, names: Collection[str]) -> Collection[str]:
        """Always empty."""
        return ()

    def forbidden_globs(self, top: str) -> Sequence[str]:
        """Always empty."""
        return ()

    def note_opened(self, path: str) -> None:
        """Do nothing."""

    def note_visible(self, roots: Sequence[str], named: Iterable[str] = ()) -> None:
        """Do nothing."""

    def writable(self) -> Sequence[str] | None:
        """Always None."""
        return None

    def demand_going(self) -> None:
        """Do nothing: the call never ends."""

    def demand_approved(self, path: str, written: str, now: os.stat_result | None) -> None:
        """Allow every change."""

    def changed(self, path: str) -> None:
        """Do nothing."""

    def count(self, size: int) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""
