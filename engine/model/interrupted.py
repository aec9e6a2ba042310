"""A call that was cut short, and what its primitive can find out about it.

A process can die after the record says that a call begins and before it says how the call ended. The record alone then can't tell
whether the call changed anything. A primitive often can: by the key that it gave to a remote service, or by what is there now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from albert_tools.engine.model.protocols import CallContext

#: What can be said about a call that was cut short.
Outcome = Literal["applied", "not applied", "unknown"]
OUTCOMES: tuple[Outcome, ...] = ("applied", "not applied", "unknown")


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a call. `value` is what an ``applied`` call would have returned, ``...`` if that is not known."""

    outcome: Outcome
    value: Any = ...


class InterruptedCall(CallContext, Protocol):
    """The context of the call that was cut short; its workspace can only be read, and it has no network."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The call's arguments, with defaults."""

    @property
    def unchanged(self) -> bool | None:
        """Whether the paths that the call changes are as they were when it began, by identity, size and times.

        None if that is not known: the call changes no paths, or they can't be read.
        """


#: Says what became of a call, sync or async. It must change nothing; an exception means ``unknown``.
Settling = Callable[[InterruptedCall], "Settled | Awaitable[Settled]"]
