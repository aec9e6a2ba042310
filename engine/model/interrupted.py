"""What became of a call that was cut short: the answer that its primitive can find out, where it offers to.

Between the entry that says that a call begins and the one that says how it ended, a process can die, and then the record alone
can't tell whether anything was done. A primitive often can: by the key that it gave to the service at the other end, or by what
is there now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from albert_tools.engine.model.protocols import ContentStore

#: What can be said of a call that was cut short.
Outcome = Literal["applied", "not applied", "unknown"]
OUTCOMES: tuple[Outcome, ...] = ("applied", "not applied", "unknown")


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a call. `value` is what one that is ``applied`` would have returned, ``...`` where that isn't known."""

    outcome: Outcome
    value: Any = ...


class InterruptedCall(Protocol):
    """What a primitive is told of a call of its own that was cut short, to find out what became of it."""

    @property
    def key(self) -> str:
        """As `CallContext.key`: what the call gave to services that know such keys."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The call's, with defaults."""

    @property
    def unchanged(self) -> bool | None:
        """Whether what stands at the paths that the call changes is what stood there as it began, by identity, size and times.

        None where that isn't known: it changes no paths, or they can't be looked at.
        """

    @property
    def workspace(self) -> Any:
        """As `CallContext.workspace`, to be read from only."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """This primitive's configuration."""

    @property
    def contents(self) -> ContentStore | None:
        """As `CallContext.contents`."""

    def effect(self, kind: str, **facts: Any) -> None:
        """Record an effect that the call turns out to have had."""


#: Answers what became of a call, sync or async. It must change nothing; whatever it raises means that nobody knows.
Settling = Callable[[InterruptedCall], "Settled | Awaitable[Settled]"]
