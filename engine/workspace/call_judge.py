"""Checks what one call does with files: the rules on paths, the limits on bytes, and the approval.

Before the call, the pipeline has already checked the path that the call names. Until the path is opened, its target can change,
and a link can lead to a forbidden place. So this class checks the real path again when a file is opened or changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.path_patterns import PathPatterns
from albert_tools.engine.policy.tool_paths import ToolPaths
from albert_tools.engine.workspace.git_folders import git_content, in_git_folder
from albert_tools.engine.workspace.private_files import private_file

#: What a call does with a path.
Use = Literal["read", "write", "delete"]

#: Takes an absolute path, the path as the call wrote it, and the `stat` result of the file there (None: no file). Raises a
#: failure if the person approved a different state of the file.
DemandApproved = Callable[[str, str, os.stat_result | None], None]

#: The rules of a workspace outside of any call: they allow everything.
NO_RULES = ToolPaths("", (), "/")
_NOTHING = PathPatterns((), "/", "/")


class CallJudge:
    """Checks the files of one call of one tool. Paths are absolute and contain no link."""

    def __init__(
        self,
        paths: ToolPaths,
        tool: str = "",
        max_file_bytes: int = sys.maxsize,
        *,
        bytes_left: int | None = None,
        demand_approved: DemandApproved = lambda path, written, now: None,
        private: PathPatterns = _NOTHING,
        marks_private: Callable[[], bool] | None = None,
    ) -> None:
        """`max_file_bytes` limits the bytes of one file, and `bytes_left` the bytes that the call may write in total; None means no
        limit. `private` are the files with private data. `marks_private` says whether it matters that one is seen (None: no).
        """
        self.max_file_bytes = max_file_bytes
        self.selective = paths.selective
        self.bytes_written = 0
        self.private_path: str | None = None
        self._paths = paths
        self._tool = tool
        self.divides = paths.divides
        self.unreadable = paths.unreadable
        self.forbidden_globs = paths.forbidden_globs
        self.writable = paths.writable
        self._bytes_left = bytes_left
        self._demand_approved = demand_approved
        self._private = private
        self._marks_private = marks_private
        self._changed: set[str] = set()
        self._in_git: dict[str, bool] = {}
        self._over = False

    def demand(self, path: str, use: Use) -> None:
        """Refuse a use of a path that the rules forbid.

        Raises:
            Failure: the failure of the decision.
        """
        decision = self._paths.judge(path, use)
        if decision is not None and decision.verdict == "deny":
            raise decision.failure(self._tool)
        if use == "read":
            self.note_opened(path)
        if self.selective and git_content(path):
            raise Failure(
                "permission_denied",
                "this part of git's folder may contain what the rules on paths forbid",
                hint="use the tool `git`, which leaves out what the rules forbid",
                rule="git_own",
                tool=self._tool,
            )

    def demand_not_forbidden(self, path: str) -> None:
        """Refuse a path that `forbidden_paths` name, and no other one.

        Raises:
            Failure: the failure of the decision.
        """
        if (decision := self._paths.forbidden(path)) is not None:
            raise decision.failure(self._tool)
        self.note_opened(path)

    def note_opened(self, path: str) -> None:
        """Note that the call opens a file: whether it has private data. Git's own files can have the content of any file."""
        if self.private_path is None and (self._private.match(path) or self._has_any_content(path)):
            self.private_path = path

    def _has_any_content(self, path: str) -> bool:
        if self._marks_private is None:
            return False
        folder = os.path.dirname(path)
        if folder not in self._in_git:
            # A call can open thousands of files in one folder.
            self._in_git[folder] = in_git_folder(f"{folder}/HEAD", self._paths.workspace)
        return self._in_git[folder] and git_content(path) and self._marks_private()

    def allows(self, path: str) -> bool:
        """Returns whether the rules allow reading a path."""
        decision = self._paths.judge(path, "read")
        return decision is None or decision.verdict != "deny"

    def note_visible(self, roots: Sequence[str], named: Iterable[str] = ()) -> None:
        """Note that a command may read all files below the folders `roots`, and those `named`, which git may have: whether one has
        private data (`private_file`)."""
        if self.private_path is None and self._marks_private is not None and self._marks_private():
            self.private_path = private_file(named, roots, self._private, self.allows)

    def demand_going(self) -> None:
        """Refuse if the call has ended.

        Raises:
            Failure: `cancelled`.
        """
        if self._over:
            raise Failure("cancelled", "the call is over, so nothing more is done", tool=self._tool)

    def demand_approved(self, path: str, written: str, now: os.stat_result | None) -> None:
        """Refuse a change if the call has ended, or if the person approved a different state of the file.

        Raises:
            Failure: `cancelled`, or the failure of the approval check.
        """
        self.demand_going()
        if path not in self._changed:
            self._demand_approved(path, written, now)

    def changed(self, path: str) -> None:
        """Note that the call has changed the file at the path. Later changes by the same call need no new check."""
        self._changed.add(path)

    def count(self, size: int) -> None:
        """Count bytes before they are written. This also counts the bytes of a thread that runs longer than its call.

        Raises:
            Failure: `budget_exceeded`.
        """
        if self._bytes_left is not None:
            if size > self._bytes_left:
                raise Failure(
                    "budget_exceeded",
                    f"{self._tool} would write more than the {self._bytes_left:,} bytes that the session's budget has left",
                    hint="the rest needs a session with a larger budget",
                    rule="lease.budget.bytes_written",
                    tool=self._tool,
                )
            self._bytes_left -= size
        self.bytes_written += size

    def end(self) -> None:
        """Mark the call as ended. A thread of the call that still runs can't change files any more."""
        self._over = True
