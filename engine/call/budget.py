"""What a request takes from its session's budget, written down as it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from albert_tools.engine.call.context import Request
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import Effect

#: Which fact of which effect is counted in which unit.
_COUNTED = (
    ("bytes_written", "write", "size_bytes"),
    ("network_bytes", "network", "size_bytes"),
    ("network_bytes", "network", "sent_bytes"),
    ("model_tokens", "network", "model_tokens"),
    ("model_cost", "network", "model_cost"),
)


def spent_by(effects: Sequence[Effect]) -> dict[str, float]:
    """What effects come to, by unit."""
    found: dict[str, float] = {}
    for effect in effects:
        for unit, kind, fact in _COUNTED:
            amount = effect.facts.get(fact)
            if effect.kind == kind and isinstance(amount, int | float) and amount > 0:
                found[unit] = found.get(unit, 0) + amount
    return found


def spend(request: Request, **used: float) -> None:
    """Take from the budget of the request's session; without one there is nothing to take from."""
    ledger = request.surroundings.ledger
    if request.session is None or ledger is None or not any(used.values()):
        return
    # What was done is done. A log that takes no more denies whatever comes next.
    with suppress(Failure):
        ledger.append("use", {"session": request.session.id, "used": used})


def consumed(request: Request, seconds: float) -> dict[str, int | float]:
    """What the request took in all; the names say the units."""
    found: dict[str, int | float] = {"calls": request.calls + 1, "wall_seconds": round(seconds - request.waited, 6)}
    return {**found, **spent_by(request.effects)}


def left(request: Request, unit: str) -> float:
    """How much of a unit the budget of the request's session has left."""
    sessions = request.surroundings.sessions
    if request.session is None or sessions is None:
        return float("inf")
    return sessions.left(request.session, unit)


def session_seconds(request: Request) -> float:
    """How long the request's session lets it take."""
    sessions = request.surroundings.sessions
    if request.session is None or sessions is None:
        return float("inf")
    return sessions.seconds(request.session)
