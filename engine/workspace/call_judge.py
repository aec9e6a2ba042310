"""Checks what one call does with files: the rules on paths, the limits on bytes, and the approval.

Before the call, the pipeline has already checked the path that the call names. Until the path is opened, its target can change,
and a link can lead to a forbidden place. So this class checks the real path again when a file is opened or changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.path_patterns import PathPatterns
from albert_tools.engine.workspace.git_folders import git_content
from albert_tools.engine.workspace.path_judge import Use
from albert_tools.engine.workspace.private_files import private_file

#: Returns the decision about an absolute path and its use; None if no rule objects.
PathRules = Callable[[str, str], Decision | None]

#: Takes an absolute path, the path as the call wrote it, and the `stat` result of the file there (None: no file). Raises a
#: failure if the person approved a different state of the file.
DemandApproved = Callable[[str, str, os.stat_result | None], None]

_NOTHING = PathPatterns((), "/", "/")


class CallJudge:
    """Checks the files of one call of one tool."""

    def __init__(
        self,
        rules: PathRules,
        tool: str,
        max_file_bytes: int,
        *,
        selective: bool = False,
        divides: Callable[[str], bool] = lambda folder: False,
        unreadable: Callable[[str, Collection[str]], Collection[str]] = lambda folder, names: (),
        forbidden: Callable[[str], Decision | None] = lambda path: None,
        globs: Callable[[str], Sequence[str]] = lambda top: (),
        writable: Callable[[], Sequence[str] | None] = lambda: None,
        bytes_left: int | None = None,
        demand_approved: DemandApproved = lambda path, written, now: None,
        private: PathPatterns = _NOTHING,
        marks_private: Callable[[], bool] = lambda: False,
    ) -> None:
        """`divides` and `unreadable` answer for whole folders, as the methods of `Judge` do; they agree with `rules`.

        `forbidden` returns the denial of a forbidden path, `globs` the forbidden paths below a folder, as git's globs.

        `writable` returns the only paths that may be changed. `bytes_left` limits the bytes that the call may write in total; None
        means no limit. `private` are the files with private data; `marks_private` says whether it matters that a command sees one.
        """
        self.max_file_bytes = max_file_bytes
        self.selective = selective
        self.bytes_written = 0
        self.private_path: str | None = None
        self._rules = rules
        self._tool = tool
        self._forbidden = forbidden
        self._globs = globs
        self.divides = divides
        self.unreadable = unreadable
        self.writable = writable
        self._bytes_left = bytes_left
        self._demand_approved = demand_approved
        self._private = private
        self._marks_private = marks_private
        self._changed: set[str] = set()
        self._over = False

    def demand(self, path: str, use: Use) -> None:
        """Refuse a use of a path that the rules forbid.

        Raises:
            Failure: the failure of the decision.
        """
        decision = self._rules(path, use)
        if decision is not None and decision.verdict == "deny":
            raise decision.failure(self._tool)
        if use == "read":
            self._note_private(path)
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
        if (decision := self._forbidden(path)) is not None:
            raise decision.failure(self._tool)
        self._note_private(path)

    def _note_private(self, path: str) -> None:
        if self.private_path is None and self._private.match(path):
            self.private_path = path

    def allows(self, path: str) -> bool:
        """Returns whether the rules allow reading a path."""
        decision = self._rules(path, "read")
        return decision is None or decision.verdict != "deny"

    def note_read(self, paths: Iterable[str], roots: Sequence[str]) -> None:
        """Note that a command may read these files, and all below the folders among them, as far as they lie in `roots`: whether
        one has private data (`private_file`)."""
        if self.private_path is None and self._marks_private():
            self.private_path = private_file(paths, roots, self._private, self.allows)

    def forbidden_globs(self, top: str) -> Sequence[str]:
        """The forbidden paths below an allowed folder, as git's globs relative to it."""
        return self._globs(top)

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
