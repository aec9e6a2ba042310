"""Null objects for a missing session, ledger or journal. They allow everything and record nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tools.engine.call.journal import Entered, Step
    from albert_tools.engine.model.definition import Json, ToolVersion
    from albert_tools.engine.model.record_types import Entry


class NoSession:
    """The session of a call that the owner makes. See `LeasedSession`."""

    id: str | None = None
    origin: str | None = None
    is_limited = False

    def renew(self) -> None:
        """Nothing is to be read."""

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

    def seen(self) -> dict[str, str]:
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

    _inside = nullcontext()

    @property
    def owner(self) -> str:
        """Nobody."""
        return ""

    def append(self, kind: str, data: Any) -> int:
        """Drop the entry."""
        return 0

    def durable(self, n: int) -> None:
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


class NoJournal:
    """The journal of a run that is not recorded. See `RunJournal`."""

    id: str | None = None

    def note_read(self, what: str, path: str) -> None:
        """Drop it."""

    def has_read(self, what: str) -> bool:
        """Nobody knows what a run has read, so it has read everything."""
        return True

    def charge(self, contents: Any) -> None:
        """Store nothing."""

    def find(self, step: str, tool: str, version: str, arguments: Json, *, any_version: bool = False) -> Step | None:
        """No step has been made before."""
        return None

    def entered(self, step: str, definition: Any, arguments: Json) -> Entered | None:
        """No program has begun before."""
        return None

    def within(self, step: str) -> list[Step]:
        """No steps."""
        return []

    def was_interrupted_at(self, step: str) -> bool:
        """False."""
        return False

    def times_begun(self, step: str) -> int:
        """0."""
        return 0

    def outcome(self) -> dict[str, Json]:
        """Nothing was applied, and nothing is unknown."""
        return {"applied": 0, "unknown": []}

    def may_have_changed(self) -> bool:
        """False."""
        return False

    def begin_step(self, step: str, definition: Any, arguments: Json, before: str | None = None) -> None:
        """Drop the entry."""

    def end_step(
        self,
        step: str,
        definition: Any,
        arguments: Json,
        result: Any,
        effects: Sequence[Any],
        began: float = 0.0,
        log: str = "",
    ) -> None:
        """Drop the entry."""

    def keep(self, output: Json) -> None:
        """Store nothing."""

    def ask(self, step: str, approval: str, arguments: Json) -> None:
        """Drop the entry."""

    def enter(self, *_: Any) -> None:
        """Drop the entry."""

    async def sync(self) -> None:
        """Nothing to sync."""

    def close(self) -> None:
        """Nothing to close."""


NO_SESSION, NO_LEDGER, NO_JOURNAL = NoSession(), NoLedger(), NoJournal()
