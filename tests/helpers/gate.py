"""Waiting for a sign instead of a time: conditions that are polled, and a primitive that waits until the test lets it go on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from albert_tools import primitive

#: Seconds until a condition that never comes true fails the test.
PATIENCE = 60.0
_POLL = 0.005


def until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(_POLL)


async def until_async(condition: Callable[[], object]) -> None:
    """As `until`, in an event loop."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        await asyncio.sleep(_POLL)


class Gate:
    """Counts the calls of `hold` that have begun and that were cancelled; `open` lets them return."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Close it, and count from 0."""
        self.begun = self.cancelled = 0
        self._opened = threading.Event()

    def open(self) -> None:
        """Let the waiting calls, and all later ones, return."""
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
