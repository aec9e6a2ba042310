"""The sessions, approvals, rate limits, dedupe keys and activations of one ledger. Each module is imported at its first use.

Most processes make one call that needs none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from albert_tools.engine.model.protocols import Record

if TYPE_CHECKING:
    from albert_tools.engine.authority.activations import Activations
    from albert_tools.engine.authority.approvals import Approvals
    from albert_tools.engine.authority.idempotency import DedupeKeys
    from albert_tools.engine.authority.rate_limit import RateLimits
    from albert_tools.engine.authority.sessions import Sessions


class Projections:
    """The projections of one ledger. They use the same clock (seconds since 1970)."""

    def __init__(self, ledger: Record, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions and their leases."""
        from albert_tools.engine.authority.sessions import Sessions

        return Sessions(self._ledger, self._clock)

    @cached_property
    def approvals(self) -> Approvals:
        """Questions to a person, and their answers."""
        from albert_tools.engine.authority.approvals import Approvals

        return Approvals(self._ledger, self._clock)

    @cached_property
    def rate_limits(self) -> RateLimits:
        """Calls within the last hour."""
        from albert_tools.engine.authority.rate_limit import RateLimits

        return RateLimits(self._ledger, self._clock)

    @cached_property
    def dedupe_keys(self) -> DedupeKeys:
        """Calls by their dedupe keys."""
        from albert_tools.engine.authority.idempotency import DedupeKeys

        return DedupeKeys(self._ledger, self._clock)

    @cached_property
    def activations(self) -> Activations:
        """The active tools."""
        from albert_tools.engine.authority.activations import Activations

        return Activations(self._ledger)
