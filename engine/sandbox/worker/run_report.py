"""What a run reports to its caller, and the clock of the run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(slots=True)
class RunReport:
    """Seconds of own time and number of calls, once a run has ended; and its clock, while it runs."""

    own_seconds: float = 0.0
    calls: int = 0
    clock: asyncio.Timeout | None = None
    _left: float = 0.0

    def pause(self) -> None:
        """Stop the run's clock while it waits for a person."""
        if self.clock is not None and (when := self.clock.when()) is not None:
            self._left = when - asyncio.get_running_loop().time()
            self.clock.reschedule(None)

    def go_on(self) -> None:
        """Let the clock run again, with the time that was left."""
        if self.clock is not None and self.clock.when() is None:
            self.clock.reschedule(asyncio.get_running_loop().time() + self._left)
