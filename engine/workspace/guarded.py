"""The workspace as one call sees it: every file it opens is judged under its real path, the one without a link in it.

The pipeline has judged the path that the call names. Where that leads can change until it is opened, and a link may lead where
the rules forbid; so the rules are asked again about what is really opened, and that is what is opened or nothing is. Where a
person was asked about the call, what a file replaces must be what that person was asked about, in the moment before it is
replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from albert_tools.engine.authority.approval_digest import Standing, changed_since, standing_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.workspace.files import Demand
from albert_tools.engine.workspace.workspace import (
    Entry,
    FileFacts,
    Info,
    Judge,
    Met,
    Moved,
    Opened,
    Removed,
    Workspace,
)

#: Asked with an absolute path and a use; None means that the rules have nothing against it.
Rules = Callable[[str, str], Decision | None]


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
        judge: Rules,
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

    def at_root(self) -> AbstractContextManager[int]:
        """The workspace's open folder, for what sees only as much of it as the rules allow."""
        return self._workspace.folder(str(self._workspace.root))

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

    def open(self, path: str) -> Opened:
        """As `Workspace.open`, of a file that the rules let be read."""
        return self._bounded(self._workspace.open(path, judge=self._demander("read")))

    def read(self, path: str, limit: int, *, follow: bool = True) -> bytes:
        """As `Workspace.read`, of a file that the rules let be read."""
        opened = self._workspace.open(path, follow=follow, judge=self._demander("read"))
        with self._bounded(opened):
            return opened.read(limit)

    def _bounded(self, opened: Opened) -> Opened:
        opened.bound(self._max_bytes, "max_file_size_mb", self.demand_going)
        return opened

    def info(self, path: str) -> Info:
        """As `Workspace.info`, of what the rules let be read."""
        return self._workspace.info(path, self._demander("read"), self.demand_going)

    def replace(self, path: str, data: bytes, *, new: bool = False, mode: int = 0o666) -> FileFacts:
        """As `Workspace.replace`, of a file that the rules let be written."""
        place = self._demand(path, "write")
        self._demand_size(len(data))
        with self._counted() as count:
            count(len(data))
            found = self._workspace.replace(path, data, self._last(place, path), new=new, mode=mode)
        self._done(place)
        return found

    def rewrite(
        self, path: str, change: Callable[[bytes | None], bytes], limit: int, *, missing: bool = False
    ) -> FileFacts:
        """As `Workspace.rewrite`, of a file that the rules let be written. All of it is counted as written."""
        place = self._demand(path, "write")
        with self._counted() as count:

            def changed(old: bytes | None) -> bytes:
                data = change(old)
                self._demand_size(len(data))
                count(len(data))
                return data

            limit = min(limit, self._max_bytes)
            found = self._workspace.rewrite(path, changed, limit, self._last(place, path), missing=missing)
        self._done(place)
        return found

    def remove(self, path: str) -> Removed:
        """As `Workspace.remove`, of what the rules let be deleted."""
        place = self._demand(path, "delete")
        found = self._workspace.remove(path, self._last(place, path), self.demand_going)
        self._done(place)
        return found

    def move(self, source: str, target: str, limit: int, *, new: bool = True) -> Moved:
        """As `Workspace.move`, of a file that the rules let be deleted at one path and written at the other.

        It is counted as written."""
        places = self._demand(source, "delete"), self._demand(target, "write")
        demands = self._last(places[0], source), self._last(places[1], target)
        limit = min(limit, self._max_bytes)
        with self._counted() as count:
            found = self._workspace.move(source, target, limit, demands, count, self.demand_going, new=new)
        for place in places:
            self._done(place)
        return found

    def make_folder(self, path: str, *, parents: bool = True) -> list[str]:
        """As `Workspace.make_folder`, of folders that the rules let be written."""
        place = self._demand(path, "write")
        judge = self._demander("write")

        def last(absolute: str) -> None:
            judge(absolute)
            # There is nothing at any of them, or they would not be made.
            self._demand_same(place, path, None)

        made = self._workspace.make_folder(path, last, parents=parents)
        self._done(place)
        return made

    def _demand_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise Failure(
                "too_large",
                f"{size:,} bytes are more than the {self._max_bytes:,} that a file may have",
                hint="write several files",
                rule="max_file_size_mb",
            )

    @contextmanager
    def _counted(self) -> Iterator[Callable[[int], None]]:
        """Counts bytes, before they are written: whoever looks while a thread still writes, after the call's time is up, counts
        them, too. What was not written after all is taken back."""
        sizes: list[int] = []

        def count(size: int) -> None:
            if self._left is not None and size > self._left:
                raise Failure(
                    "budget_exceeded",
                    f"{self._tool} would write more than the {self._left:,} bytes that the session's budget has left",
                    hint="ask for a session with a larger budget",
                    rule="lease.budget.bytes_written",
                    tool=self._tool,
                )
            self._count(size)
            sizes.append(size)

        try:
            yield count
        except BaseException:
            self._count(-sum(sizes))
            raise

    def _count(self, size: int) -> None:
        self.written += size
        if self._left is not None:
            self._left -= size

    def _done(self, place: str) -> None:
        if self._approved is not None:
            # From here on what stands there is what this call has put there.
            self._approved.pop(place, None)

    def end(self) -> None:
        """The call is over: a thread of it that goes on all the same changes nothing more."""
        self._over = True

    def demand_going(self) -> None:
        """As `Workspace.demand_going`."""
        if self._over:
            raise Failure("cancelled", "the call is over, so nothing more is done", tool=self._tool)

    def _last(self, place: str, path: str) -> Demand:
        return partial(self._demand_same, place, path)

    def _demand_same(self, place: str, path: str, now: os.stat_result | None) -> None:
        self.demand_going()
        if self._approved is not None and place in self._approved and standing_of(now) != self._approved[place]:
            raise changed_since(path, self._tool)

    def listing(self, path: str, recursive: bool = False) -> list[Entry]:
        """As `Workspace.listing`, without what lies in folders that the rules forbid."""
        real = self._workspace.locate(path)
        self._demand(real, "read")
        self.demand_going()
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

    def walk(self, path: str, enter: Callable[[Met], bool] = lambda met: True) -> Iterator[Met]:
        """As `Workspace.walk`; what the rules forbid to be read is not entered."""
        self._demand(self._workspace.locate(path), "read")

        def allowed(met: Met) -> bool:
            return enter(met) and self._judge(met.absolute, "read") is None

        for met in self._workspace.walk(path, allowed):
            self.demand_going()
            yield met

    def open_met(self, met: Met) -> Opened:
        """As `Workspace.open_met`, of a file that the rules let be read."""
        self._demander("read")(met.absolute)
        return self._bounded(self._workspace.open_met(met))

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """As `Workspace.folder`, of one that the rules let be read."""
        real = self._workspace.locate(path)
        self._demand(real, "read")
        with self._workspace.folder(real, follow=False) as opened:
            yield opened

    def _demand(self, path: str, use: str) -> str:
        """The absolute path, which the rules let be used so."""
        absolute = self._workspace.absolute(path)
        self._demand_absolute(use, absolute)
        return absolute

    def _demander(self, use: str) -> Judge:
        return partial(self._demand_absolute, use)

    def _demand_absolute(self, use: str, absolute: str) -> None:
        decision = self._judge(absolute, use)
        if decision is not None and decision.verdict == "deny":
            raise decision.failure(self._tool)
