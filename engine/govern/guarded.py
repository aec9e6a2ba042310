"""The workspace as one call sees it: every file it opens is judged under its real path, the one without a link in it.

The pipeline has judged the path that the call names. Where that leads can change until it is opened, and a link may lead where
the rules forbid; so the rules are asked again about what is really opened, and that is what is opened or nothing is. Where a person
was asked about the call, what a file replaces must be what that person was asked about, in the moment before it is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from albert_tools.engine.govern.actions import Standing, changed_since, standing_of
from albert_tools.engine.govern.contain import Entry, FileFacts, Workspace
from albert_tools.engine.govern.policy.decision import Decision
from albert_tools.engine.model.failure import Failure

#: Asked with an absolute path and a use; None means that the rules have nothing against it.
Judge = Callable[[str, str], Decision | None]


class GuardedWorkspace:
    """A `Workspace` for one call of one tool, with the same methods and the same failures."""

    __slots__ = (
        "_approved",
        "_judge",
        "_left",
        "_max_bytes",
        "_over",
        "_tool",
        "_workspace",
        "beyond",
        "selective",
        "written",
    )

    def __init__(
        self,
        workspace: Workspace,
        judge: Judge,
        max_bytes: int,
        tool: str,
        approved: Mapping[str, Standing] | None = None,
        most: int | None = None,
    ) -> None:
        """`max_bytes` bounds each file that is read or written, `most` all that are written together. `approved` is what may be
        replaced, by absolute path, where a person was asked."""
        self._approved = dict(approved) if approved is not None else None
        self._left = most
        self._over = False
        #: Whether rules about this tool speak of paths in the workspace, and the folders that rules open beyond it to any tool.
        self.selective = False
        self.beyond: tuple[str, ...] = ()
        #: Bytes that were written.
        self.written = 0
        self._workspace = workspace
        self._judge = judge
        self._max_bytes = max_bytes
        self._tool = tool

    @property
    def root(self) -> Path:
        """The canonical path, for showing."""
        return self._workspace.root

    @property
    def sealed(self) -> tuple[Path, ...]:
        """As `Workspace.sealed`."""
        return self._workspace.sealed

    @property
    def secret(self) -> tuple[Path, ...]:
        """As `Workspace.secret`."""
        return self._workspace.secret

    def allows(self, absolute: str) -> bool:
        """Whether the rules let a canonical path be read, without anything being looked at."""
        decision = self._judge(absolute, "read")
        return decision is None or decision.verdict != "deny"

    def locate(self, path: str) -> str:
        """As `Workspace.locate`."""
        return self._workspace.locate(path)

    def spell(self, path: str) -> str:
        """As `Workspace.spell`."""
        return self._workspace.spell(path)

    def absolute(self, path: str) -> str:
        """As `Workspace.absolute`."""
        return self._workspace.absolute(path)

    def recorded(self, path: str) -> str:
        """As `Workspace.recorded`."""
        return self._workspace.recorded(path)

    def read(self, path: str, limit: int, *, follow: bool = True) -> bytes:
        """As `Workspace.read`, of a file that the rules let be read."""
        real = self._workspace.locate(path) if follow else self._workspace.spell(path)
        self._demand(real, "read")
        if limit <= self._max_bytes:
            return self._workspace.read(real, limit, follow=False)
        try:
            return self._workspace.read(real, self._max_bytes, follow=False)
        except Failure as failure:
            if failure.code == "too_large":
                failure.rule = "max_file_size_mb"
            raise

    def replace(self, path: str, data: bytes) -> FileFacts:
        """As `Workspace.replace`, of a file that the rules let be written."""
        self._demand(self._workspace.spell(path), "write")
        if len(data) > self._max_bytes:
            raise Failure(
                "too_large",
                f"{len(data):,} bytes are more than the {self._max_bytes:,} that a file may have",
                hint="write several files",
                rule="max_file_size_mb",
            )
        if self._left is not None and len(data) > self._left:
            raise Failure(
                "budget_exceeded",
                f"{self._tool} would write more than the {self._left:,} bytes that the session's budget has left",
                hint="what is left to do needs a session with a larger budget",
                rule="lease.budget.bytes_written",
                tool=self._tool,
            )
        place = self._workspace.absolute(path)
        # Before it is done: whoever looks while a thread still writes, after the call's time is up, counts that, too.
        self._count(len(data))
        try:
            found = self._workspace.replace(path, data, partial(self._demand_same, place, path))
        except BaseException:
            self._count(-len(data))
            raise
        if self._approved is not None:
            # From here on what stands there is what this call has put there.
            self._approved.pop(place, None)
        return found

    def _count(self, size: int) -> None:
        self.written += size
        if self._left is not None:
            self._left -= size

    def end(self) -> None:
        """The call is over: a thread of it that goes on all the same changes nothing more."""
        self._over = True

    def _demand_same(self, place: str, path: str, now: os.stat_result | None) -> None:
        if self._over:
            raise Failure("cancelled", "the call is over, so it can't change anything more", tool=self._tool)
        if self._approved is not None and place in self._approved and standing_of(now) != self._approved[place]:
            raise changed_since(path, self._tool)

    def listing(self, path: str, recursive: bool = False) -> list[Entry]:
        """As `Workspace.listing`, without what lies in folders that the rules forbid."""
        real = self._workspace.locate(path)
        self._demand(real, "read")
        found = self._workspace.listing(path, recursive, real=real)
        if not recursive:
            return found
        top, shown = self._workspace.absolute(real), self._workspace.spell(path)
        prefix = "" if shown == "." else f"{shown}/"
        return [
            entry
            for entry in found
            if "/" not in (below := entry.path.removeprefix(prefix))
            or self._judge(f"{top}/{below.rpartition('/')[0]}", "read") is None
        ]

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """As `Workspace.folder`, of one that the rules let be read."""
        real = self._workspace.locate(path)
        self._demand(real, "read")
        with self._workspace.folder(real, follow=False) as opened:
            yield opened

    def _demand(self, spelled: str, use: str) -> None:
        decision = self._judge(self._workspace.absolute(spelled), use)
        if decision is not None and decision.verdict == "deny":
            raise decision.failure(self._tool)
