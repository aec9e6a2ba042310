"""The ledger entries of one request that are not written yet.

Nothing leaves the service before its entries are written. So they are pushed here, and one transaction writes all of them before
an effect, a question, a live print, a notice to an observer, or the result. A program that takes longer than 0.2 s is written then,
so that other processes see it and can cancel it. What was read meanwhile is known to this process alone: if it dies, the run is
resumed without these steps, and reads again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
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
        if self._is_timed and self._timer is None:
            self.keep_time()
        return entry

    def keep_time(self) -> None:
        """Write what is waiting, and what is pushed from now on, at most `LATEST` later."""
        self._is_timed = True
        self._timer = asyncio.get_running_loop().call_later(LATEST, self._late)

    @contextmanager
    def together(self, *abouts: Hashable, at_once: bool) -> Iterator[None]:
        """A block whose entries are all written, or none. `at_once`: it is a transaction that ends with all that was pushed.

        `abouts` are as for `Ledger.transaction`.

        Raises:
            Failure: `io_error`, `damaged`. Nothing was written.
        """
        before, last = len(self._waiting), self.last
        try:
            with self._ledger.transaction(*abouts) if at_once else nullcontext():
                yield
                for entry in self._waiting if at_once else ():
                    last = self._ledger.append(entry.kind, entry.data)
        except BaseException:
            del self._waiting[before:]
            raise
        if at_once:
            self._written(last)

    def flush(self) -> None:
        """Write all that was pushed. Raises as `together`; the entries remain."""
        if len(self._waiting) > 1:
            with self.together(at_once=True):
                pass
        elif self._waiting:
            # One entry is a transaction by itself.
            self._written(self._ledger.append(self._waiting[0].kind, self._waiting[0].data))

    def try_to_flush(self) -> None:
        """Write all that was pushed, if possible. If not, the next write tries again."""
        with suppress(Failure):
            self.flush()

    def drop(self) -> bool:
        """Drop what was pushed. Returns whether a decision is among it: nobody may get what was done by it."""
        found = any(entry.kind == "call" for entry in self._waiting)
        self._end()
        return found

    def _written(self, last: int) -> None:
        self.last = last
        for entry in self._waiting:
            entry.is_written = True
        self._end()

    def _end(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        self.try_to_flush()
