"""The report of a run to its caller, and the clock of the run."""

from __future__ import annotations

import asyncio

from msgspec import Struct


class RunReport(Struct):
    """After a run: the seconds of its own time and the number of its calls. During a run: its clock."""

    own_seconds: float = 0.0
    calls: int = 0
    clock: asyncio.Timeout | None = None
    _left: float = 0.0

    def pause(self) -> None:
        """Stop the run's clock while the run waits for a person."""
        if self.clock is not None and (when := self.clock.when()) is not None:
            self._left = when - asyncio.get_running_loop().time()
            self.clock.reschedule(None)

    def go_on(self) -> None:
        """Start the clock again with the remaining time."""
        if self.clock is not None and self.clock.when() is None:
            self.clock.reschedule(asyncio.get_running_loop().time() + self._left)
