"""The judge of a workspace: decides what one call may do with the files that it opens.

A workspace asks its judge about the real path, the one without a link in it, of whatever it is about to open or change. A judge
refuses by raising a `Failure`.
"""

from __future__ import annotations

import os
import sys
from typing import Literal, Protocol

#: What a call does with a path.
Use = Literal["read", "write", "delete"]


class Judge(Protocol):
    """What a workspace asks. Paths are absolute and have no link in them."""

    @property
    def max_file_bytes(self) -> int:
        """The most bytes of one file that may be read or written."""

    @property
    def bytes_written(self) -> int:
        """The bytes that the call has written."""

    @property
    def selective(self) -> bool:
        """Whether the rules about the tool name paths in the workspace, so that it may see only a part of it."""

    def demand(self, path: str, use: Use) -> None:
        """Refuse a use of a path that the rules forbid."""

    def allows(self, path: str) -> bool:
        """Whether the rules let a path be read."""

    def demand_going(self) -> None:
        """Refuse with code `cancelled` when the call is over."""

    def demand_approved(self, path: str, written: str, now: os.stat_result | None) -> None:
        """Refuse a change of what a person was not asked about, or after the end of the call.

        Called in the moment before the change. `now` are the facts of what is at the path, None for nothing; `written` is the
        path as the call wrote it.
        """

    def changed(self, path: str) -> None:
        """The call has changed what is at the path. The approval no longer speaks of what is there now."""

    def count(self, size: int) -> None:
        """Count bytes about to be written, or, if negative, bytes that were not written after all."""

    def end(self) -> None:
        """The call is over. A thread of it that still runs changes nothing more."""


class AllowAll:
    """The judge where nobody judges."""

    max_file_bytes = sys.maxsize
    bytes_written = 0
    selective = False

    def demand(self, path: str, use: Use) -> None:
        """Allow it."""

    def allows(self, path: str) -> bool:
        """Always."""
        return True

    def demand_going(self) -> None:
        """The call never ends."""

    def demand_approved(self, path: str, written: str, now: os.stat_result | None) -> None:
        """Allow it."""

    def changed(self, path: str) -> None:
        """Needs no note."""

    def count(self, size: int) -> None:
        """Counts nothing."""

    def end(self) -> None:
        """Changes nothing."""
