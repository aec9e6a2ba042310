"""The ledger entries of one request that are not written yet.

Nothing leaves the service before its entries are written. So they are pushed here, and one transaction writes all of them before
an effect, a question, a live print, a notice to an observer, or the result. A program that takes longer than 0.2 s is written then,
so that other processes see it and can cancel it. What was read meanwhile is known to this process alone: if it dies, the run is
resumed without these steps, and reads again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure

if TYPE_CHECKING:
    from albert_tools.engine.model.protocols import Ledger

#: The seconds after which what a program has pushed is written in any case.
LATEST = 0.2


class Entry:
    """One entry. As long as it is not written, its `data` can be added to."""

    __slots__ = ("data", "is_written", "kind")

    def __init__(self, kind: str, data: dict[str, Any]) -> None:
        self.kind = kind
        self.data = data
        self.is_written = False


class Entries:
    """The entries of a request, in order. Only the event loop's thread uses it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: list[Entry] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_timed = False
        #: The number of the last entry that was written.
        self.last = 0

    def push(self, kind: str, data: Mapping[str, Any]) -> Entry:
        """Add an entry."""
        entry = Entry(kind, dict(data))
        self._waiting.append(entry)
        if self._is_timed:
            self.keep_time()
        return entry

    def keep_time(self) -> None:
        """Write what is waiting, and what is pushed from now on, at most `LATEST` later."""
        self._is_timed = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATEST, self._late)

    async def together(self, about: Hashable, decide: Callable[[], None]) -> None:
        """`decide` pushes entries. They are written with all that was pushed before, in one transaction. `about` is as for
        `Ledger.expect`.

        Raises:
            Failure: What `decide` raises; `io_error`, `damaged`. Nothing was written.
            asyncio.CancelledError: As `Ledger.together`.
        """
        before, writing, last = list[Entry](), list[Entry](), 0

        def write() -> None:
            nonlocal before, writing, last
            before, writing = [*self._waiting], self._waiting
            decide()
            # Another task of the run can push something before the end of the transaction.
            self._waiting = []
            for entry in writing:
                last = self._ledger.append(entry.kind, entry.data)

        def ended(written: bool) -> None:
            if written:
                self._written(writing, last)
            else:
                self._waiting = before if self._waiting is writing else [*before, *self._waiting]

        await self._ledger.together(about, write, ended)

    def flush(self) -> None:
        """Write all that was pushed. Raises Failure `io_error`, `damaged`; the entries remain."""
        if self._waiting:
            last = 0
            # One entry is a transaction by itself.
            with self._ledger.transaction() if len(self._waiting) > 1 else nullcontext():
                for entry in self._waiting:
                    last = self._ledger.append(entry.kind, entry.data)
            writing, self._waiting = self._waiting, []
            self._written(writing, last)

    async def aflush(self, about: Hashable) -> None:
        """As `flush`, together with what other requests write."""
        if self._waiting:
            if self._ledger.gathers:
                await self.together(about, lambda: None)
            else:
                self.flush()

    def try_to_flush(self) -> None:
        """Write all that was pushed, if possible. If not, the next write tries again."""
        with suppress(Failure):
            self.flush()

    def drop(self) -> bool:
        """Drop what was pushed. Returns whether a decision is among it: nobody may get what was done by it."""
        has_decision = any(entry.kind == "call" for entry in self._waiting)
        self._end()
        return has_decision

    def _written(self, entries: list[Entry], last: int) -> None:
        self.last = last
        for entry in entries:
            entry.is_written = True
        if not self._waiting:
            self._end()

    def _end(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        self.try_to_flush()
