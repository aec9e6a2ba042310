"""What the log knows of sessions, approvals, windows and repeats, each made when it is first asked for.

Most calls ask for none of them, and a process that makes one call need not load what it doesn't use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from albert_tools.engine.model.protocols import Ledger

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approvals
    from albert_tools.engine.authority.idempotency import Repeats
    from albert_tools.engine.authority.rate_limit import Windows
    from albert_tools.engine.authority.sessions import Sessions


class Desks:
    """Those of one log, by one clock (seconds since 1970)."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions and their leases."""
        from albert_tools.engine.authority.sessions import Sessions

        return Sessions(self._ledger, self._clock)

    @cached_property
    def approvals(self) -> Approvals:
        """Questions and answers."""
        from albert_tools.engine.authority.approvals import Approvals

        return Approvals(self._ledger, self._clock)

    @cached_property
    def windows(self) -> Windows:
        """How often what was called."""
        from albert_tools.engine.authority.rate_limit import Windows

        return Windows(self._ledger, self._clock)

    @cached_property
    def repeats(self) -> Repeats:
        """What was called under which key."""
        from albert_tools.engine.authority.idempotency import Repeats

        return Repeats(self._ledger)
