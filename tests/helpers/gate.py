"""Waits for a condition instead of a fixed time.

`until` polls a condition. `hold` is a primitive that waits until the test opens a gate.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from albert_tools import primitive

#: After this many seconds, a condition that is still false fails the test.
PATIENCE = 60.0
_POLL = 0.005


def until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(_POLL)


async def until_async(condition: Callable[[], object]) -> None:
    """The same as `until`, in an event loop."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        await asyncio.sleep(_POLL)


class Gate:
    """Counts the calls of `hold` that began and the calls that were cancelled. `open` lets the calls return."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Close the gate and set both counts to 0."""
        self.begun = self.cancelled = 0
        self._opened = threading.Event()

    def open(self) -> None:
        """Let the waiting calls and all later calls return."""
        self._opened.set()

    async def wait(self) -> None:
        """Wait until the gate is open."""
        self.begun += 1
        opened = self._opened
        try:
            while not opened.is_set():
                await asyncio.sleep(_POLL)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


#: The gate of `hold`.
GATE = Gate()


@primitive(effects=["read"], timeout=PATIENCE)
async def hold() -> str:
    """Wait until the test opens the gate."""
    await GATE.wait()
    return "let go"
