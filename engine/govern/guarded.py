"""The workspace as one call sees it: every file it opens is judged under its real path, the one without a link in it.

The pipeline has judged the path that the call names. Where that leads can change until it is opened, and a link may lead where
the rules forbid; so the rules are asked again about what is really opened, and that is what is opened or nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from albert_tools.engine.govern.contain import Entry, FileFacts, Workspace
from albert_tools.engine.govern.policy.decision import Decision
from albert_tools.engine.model.failure import Failure

#: Asked with an absolute path and a use; None means that the rules have nothing against it.
Judge = Callable[[str, str], Decision | None]


class GuardedWorkspace:
    """A `Workspace` for one call of one tool, with the same methods and the same failures."""

    __slots__ = ("_judge", "_max_bytes", "_tool", "_workspace")

    def __init__(self, workspace: Workspace, judge: Judge, max_bytes: int, tool: str) -> None:
        """`max_bytes` bounds each file that is read or written."""
        self._workspace = workspace
        self._judge = judge
        self._max_bytes = max_bytes
        self._tool = tool

    @property
    def root(self) -> Path:
        """The canonical path, for showing."""
        return self._workspace.root

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
        return self._workspace.replace(path, data)

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
