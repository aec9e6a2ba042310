"""The sessions, approvals, rate limits, dedupe keys and reviews of one home. Each module is imported at its first use.

Most processes make one call that needs none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from albert_tools.engine.model.protocols import Record, ToolStore

if TYPE_CHECKING:
    from albert_tools.engine.authority.approvals import Approvals
    from albert_tools.engine.authority.idempotency import DedupeKeys
    from albert_tools.engine.authority.rate_limit import RateLimits
    from albert_tools.engine.authority.reviews import Reviews
    from albert_tools.engine.authority.sessions import Sessions
    from albert_tools.engine.authority.team_sessions import TeamSessions


class Projections:
    """The projections of one ledger and one store of tools. They use the same clock (seconds since 1970)."""

    def __init__(self, ledger: Record, store: ToolStore, clock: Callable[[], float] = time.time) -> None:
        self.ledger = ledger
        self._store = store
        self._clock = clock

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions and their leases."""
        from albert_tools.engine.authority.sessions import Sessions

        return Sessions(self.ledger, self._clock)

    @cached_property
    def team_sessions(self) -> TeamSessions:
        """The sessions of people who have signed in."""
        from albert_tools.engine.authority.team_sessions import TeamSessions

        return TeamSessions(self.ledger, self.sessions, self._clock)

    @cached_property
    def approvals(self) -> Approvals:
        """Questions to a person, and their answers."""
        from albert_tools.engine.authority.approvals import Approvals

        return Approvals(self.ledger, self._clock)

    @cached_property
    def rate_limits(self) -> RateLimits:
        """Calls within the last hour."""
        from albert_tools.engine.authority.rate_limit import RateLimits

        return RateLimits(self.ledger, self._clock)

    @cached_property
    def dedupe_keys(self) -> DedupeKeys:
        """Calls by their dedupe keys."""
        from albert_tools.engine.authority.idempotency import DedupeKeys

        return DedupeKeys(self.ledger, self._clock)

    @cached_property
    def reviews(self) -> Reviews:
        """The states of the saved versions."""
        from albert_tools.engine.authority.reviews import Reviews

        return Reviews(self.ledger, self._store)
