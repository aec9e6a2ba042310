"""What the log knows of sessions, approvals, windows and repeats, each made when it is first asked for.

Most calls ask for none of them, and a process that makes one call need not load what it doesn't use.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from albert_tools.engine.model.protocols import Ledger

if TYPE_CHECKING:
    from albert_tools.engine.govern.approvals import Approvals
    from albert_tools.engine.govern.repeats import Repeats
    from albert_tools.engine.govern.sessions import Sessions
    from albert_tools.engine.govern.windows import Windows


class Desks:
    """Those of one log."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions and their leases."""
        from albert_tools.engine.govern.sessions import Sessions

        return Sessions(self._ledger)

    @cached_property
    def approvals(self) -> Approvals:
        """Questions and answers."""
        from albert_tools.engine.govern.approvals import Approvals

        return Approvals(self._ledger)

    @cached_property
    def windows(self) -> Windows:
        """How often what was called."""
        from albert_tools.engine.govern.windows import Windows

        return Windows(self._ledger)

    @cached_property
    def repeats(self) -> Repeats:
        """What was called under which key."""
        from albert_tools.engine.govern.repeats import Repeats

        return Repeats(self._ledger)
