"""Null objects for a missing session or ledger. They allow everything and record nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import ToolVersion
    from albert_tools.engine.model.record_types import Entry


class NoSession:
    """The session of a call that the owner makes. See `LeasedSession`."""

    id: str | None = None
    origin: str | None = None
    is_limited = False
    expires = float("inf")

    def renew(self) -> None:
        """Nothing is to be read."""

    def covers(self, tool: str) -> bool:
        """Every tool."""
        return True

    def demand(
        self, tool: str, callers: Sequence[tuple[str, str]] = (), author: Callable[[], str] = lambda: ""
    ) -> None:
        """Allow every tool."""

    def knows(self, version: ToolVersion) -> bool:
        """Whether the owner has defined the version."""
        return not version.author

    def afford(self, tool: str) -> None:
        """Allow every use."""

    def refused_lately(self) -> bool:
        """No quota is used up."""
        return False

    def left(self, unit: str) -> float:
        """Infinity."""
        return float("inf")

    def bounded(self, unit: str) -> list[str]:
        """No session has a budget."""
        return []

    def lineage(self) -> list[str]:
        """No session counts the call."""
        return []

    def seen(self, excluding: str | None = None) -> dict[str, str]:
        """What the owner has seen is not remembered."""
        return {}

    def seconds(self) -> float:
        """Infinity."""
        return float("inf")

    def spend(self, **used: float) -> None:
        """Charge nobody."""

    def grant(self, run: str, expires: float | None) -> str | None:
        """A run of the owner needs no grant."""
        return None


class NoLedger:
    """A `Ledger` without entries."""

    gathers = False
    _inside = nullcontext()

    @property
    def owner(self) -> str:
        """Nobody."""
        return ""

    def append(self, kind: str, data: Any) -> int:
        """Drop the entry."""
        return 0

    def durable(self, n: int | None = None) -> None:
        """Nothing to sync."""

    async def adurable(self, n: int) -> None:
        """Nothing to sync."""

    async def expect(self, about: Any) -> None:
        """There is nothing to read."""

    def transaction(self) -> AbstractContextManager[None]:
        """A block without effect."""
        return self._inside

    async def together(self, about: Any, block: Callable[[], None], ended: Callable[[bool], None]) -> None:
        """A block without effect."""
        block()
        ended(True)

    def alive(self, owner: str) -> bool:
        """No other process uses the ledger."""
        return False

    def entries(self, kinds: Any = None, since: Any = None, run: Any = None) -> Iterator[Entry]:
        """No entries."""
        return iter(())


NO_SESSION, NO_LEDGER = NoSession(), NoLedger()
