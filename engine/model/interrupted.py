"""An interrupted call, and how its primitive determines the outcome.

A process can die after the record says that a call begins, and before the record says how the call ended. The record then does not
show whether the call changed anything. Often the primitive can find out. For example, it can use the key that it gave to a remote
service, or look at the current state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from albert_tools.engine.model.protocols import CallContext

#: The possible outcomes of an interrupted call.
Outcome = Literal["applied", "not applied", "unknown"]
OUTCOMES: tuple[Outcome, ...] = ("applied", "not applied", "unknown")


class Settled(NamedTuple):
    """The outcome of a call. `value` is the result of an ``applied`` call; it is ``...`` if the result is not known."""

    outcome: Outcome
    value: Any = ...


class InterruptedCall(CallContext, Protocol):
    """The context of the interrupted call. Its workspace is read-only, and it has no network."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The call's arguments, including defaults."""

    @property
    def unchanged(self) -> bool | None:
        """Whether the paths that the call changes are the same as when it began. Identity, size and times are compared.

        None if this is not known, because the call changes no paths or the paths can't be read.
        """


#: Determines the outcome of a call, sync or async. It must not change anything. If it raises, the outcome is ``unknown``.
Settling = Callable[[InterruptedCall], "Settled | Awaitable[Settled]"]
