"""The judge of one call: the rules about paths, the bounds on bytes, and what a person approved.

The pipeline has judged the path that the call names. Where that leads can change until it is opened, and a link may lead where the
rules forbid. So the rules are asked again about what is really opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.workspace.path_judge import Use

#: The decision about an absolute path and a use of it; None where the rules have no objection.
PathRules = Callable[[str, str], Decision | None]

#: Takes an absolute path, the same as the call wrote it, and the facts of what is there (None: nothing). Raises if a person was
#: asked about something else.
DemandApproved = Callable[[str, str, os.stat_result | None], None]


class CallJudge:
    """Judges the files of one call of one tool."""

    def __init__(
        self,
        rules: PathRules,
        tool: str,
        max_file_bytes: int,
        *,
        selective: bool = False,
        bytes_left: int | None = None,
        demand_approved: DemandApproved = lambda path, written, now: None,
    ) -> None:
        """`bytes_left` bounds all bytes that the call writes; None for no bound."""
        self.max_file_bytes = max_file_bytes
        self.selective = selective
        self.bytes_written = 0
        self._rules = rules
        self._tool = tool
        self._bytes_left = bytes_left
        self._demand_approved = demand_approved
        self._changed: set[str] = set()
        self._over = False

    def demand(self, path: str, use: Use) -> None:
        """Refuse a use of a path that the rules forbid.

        Raises:
            Failure: as the decision says.
        """
        decision = self._rules(path, use)
        if decision is not None and decision.verdict == "deny":
            raise decision.failure(self._tool)

    def allows(self, path: str) -> bool:
        """Whether the rules let a path be read."""
        decision = self._rules(path, "read")
        return decision is None or decision.verdict != "deny"

    def demand_going(self) -> None:
        """Refuse when the call is over.

        Raises:
            Failure: `cancelled`.
        """
        if self._over:
            raise Failure("cancelled", "the call is over, so nothing more is done", tool=self._tool)

    def demand_approved(self, path: str, written: str, now: os.stat_result | None) -> None:
        """Refuse a change of what a person was not asked about, or after the end of the call.

        Raises:
            Failure: `cancelled`; or what the check for approvals raises.
        """
        self.demand_going()
        if path not in self._changed:
            self._demand_approved(path, written, now)

    def changed(self, path: str) -> None:
        """The call has changed what is at the path, and may change it again."""
        self._changed.add(path)

    def count(self, size: int) -> None:
        """Count bytes before they are written, so that a thread that outlives its call is counted as well.

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
        """The call is over. A thread of it that still runs changes nothing more."""
        self._over = True
