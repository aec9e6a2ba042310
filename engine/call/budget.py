"""The time that a call may take, and the amounts that effects use of a session's budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import Effect

#: For each kind of effect the units, with the fact that is added up.
_COUNTED = {
    "write": [("bytes_written", "size_bytes")],
    "network": [
        ("network_bytes", "size_bytes"),
        ("network_bytes", "sent_bytes"),
        ("model_tokens", "model_tokens"),
        ("model_cost", "model_cost"),
    ],
}


def seconds_for(call: Call, run: Run) -> float:
    """The seconds that an authorized call may take, within the limits of its tool, the rules and its caller.

    Raises:
        Failure: `run_limit` if no time is left.
    """
    left = call.deadline + run.questions.waited - run.clock()
    seconds = min(left, call.rules.timeout(call.target.definition))
    if seconds <= 0:
        hint = "split the work over several runs"
        raise Failure("run_limit", f"no time was left for {call.name}", hint=hint, tool=call.name)
    return seconds


def seconds_used(run: Run) -> float:
    """The seconds that a request has taken so far, without the time that people took to answer."""
    return run.clock() - run.began - run.questions.waited


def spent_by(effects: Sequence[Effect]) -> dict[str, float]:
    """The amounts that effects have used, by unit."""
    totals: dict[str, float] = {}
    for effect in effects:
        for unit, fact in _COUNTED.get(effect.kind, ()):
            amount = effect.facts.get(fact)
            if isinstance(amount, int | float) and amount > 0:
                totals[unit] = totals.get(unit, 0) + amount
    return totals


def sum_of(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, int | float]:
    """The amounts of two calls together, by unit."""
    return {unit: round(one.get(unit, 0) + other.get(unit, 0), 6) for unit in {**one, **other}}


def consumed(run: Run, seconds: float) -> dict[str, int | float]:
    """The total amounts that a run has used, by unit. `seconds` is its duration."""
    amounts: dict[str, int | float] = {
        "calls": run.report.calls + 1,
        "wall_seconds": round(seconds - run.questions.waited, 6),
    }
    return {**amounts, **spent_by(run.report.effects)}
