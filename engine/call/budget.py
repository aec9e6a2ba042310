"""The session's budget: the amounts that a request has used, and the remaining amounts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from albert_tools.engine.call.context import Request
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import Effect

#: Unit, kind of effect, and the fact that is added up.
_COUNTED = (
    ("bytes_written", "write", "size_bytes"),
    ("network_bytes", "network", "size_bytes"),
    ("network_bytes", "network", "sent_bytes"),
    ("model_tokens", "network", "model_tokens"),
    ("model_cost", "network", "model_cost"),
)


def spent_by(effects: Sequence[Effect]) -> dict[str, float]:
    """The amounts that effects have used, by unit."""
    found: dict[str, float] = {}
    for effect in effects:
        for unit, kind, fact in _COUNTED:
            amount = effect.facts.get(fact)
            if effect.kind == kind and isinstance(amount, int | float) and amount > 0:
                found[unit] = found.get(unit, 0) + amount
    return found


def spend(request: Request, **used: float) -> None:
    """Charge the request's session, if there is one."""
    ledger = request.context.ledger
    if request.session is None or ledger is None or not any(used.values()):
        return
    # The effects have already happened. If the ledger can't be written, the next call is denied.
    with suppress(Failure):
        ledger.append("use", {"session": request.session.id, "used": used})


def consumed(request: Request, seconds: float) -> dict[str, int | float]:
    """The total amounts that the request used, by unit. `seconds` is its duration."""
    found: dict[str, int | float] = {"calls": request.calls + 1, "wall_seconds": round(seconds - request.waited, 6)}
    return {**found, **spent_by(request.effects)}


def left(request: Request, unit: str) -> float:
    """The remaining amount of a unit for the request's session; infinity if the budget does not limit the unit."""
    sessions = request.context.sessions
    if request.session is None or sessions is None:
        return float("inf")
    return sessions.left(request.session, unit)


def session_seconds(request: Request) -> float:
    """The maximum duration of the request according to its session."""
    sessions = request.context.sessions
    if request.session is None or sessions is None:
        return float("inf")
    return sessions.seconds(request.session)
