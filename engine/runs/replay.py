"""A call as a step of its run. If the journal contains the step, it gives the result. Otherwise the call's end is written to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from albert_tools.engine.call.context import Call
from albert_tools.engine.call.errors import notify
from albert_tools.engine.call.journal import Entered, Step
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.error_codes import ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import Effect


def is_step(call: Call, target: Target) -> bool:
    """Whether the call is a step: a call by a program, or the only call in the run of a primitive."""
    return call.depth > 0 or target.primitive is not None


def step_of(call: Call) -> str:
    """The step's name in the journal; ``0`` for the only call in the run of a primitive."""
    return call.step or "0"


def find_step(call: Call, target: Target, given: Any) -> Step | None:
    """The call's step in the journal, or None.

    Raises:
        Failure: `diverged` if the journal has another call in this step.
    """
    journal = call.request.run.journal
    if journal is None:
        return None
    # The arguments of the request itself come from the journal's header, so they can't differ.
    arguments = given if call.depth else None
    return journal.find(step_of(call), target.definition.name, target.definition.version, arguments)


def replay_step(step: Step, call: Call, target: Target) -> Json:
    """The result of a step that has ended. Its effects and prints are added to the run. Nothing is charged.

    Raises:
        Failure: the step's failure.
    """
    request, journal = call.request, call.request.run.journal
    if step.log:
        request.printed_bytes += len(step.log.encode())
        request.printed.append(step.log)
        call.printed.append(step.log)
        notify(request.log, target.definition.name, step.log)
    request.effects.extend(step.effects)
    if target.version is not None and journal is not None:
        for inner in journal.within(call.step):
            request.effects.extend(inner.effects)
            request.calls += 1
    if step.failure is not None:
        raise replace(step.failure)
    return step.value


def not_in_journal(call: Call, name: str, given: Any) -> Failure:
    """The failure that ends a replay when the program makes a call that is not in the journal."""
    return Failure(
        "diverged",
        f"the journal ends here: step {step_of(call)}, {name}, was never made",
        hint="up to here the program does what was recorded",
        tool=name,
        details={"step": step_of(call), "program": {"tool": name, "arguments": given}},
    )


def entered(target: Target, arguments: Json, call: Call) -> Entered | None:
    """The journal's entry for the same call, if this run has already begun it; see `RunJournal.entered`."""
    journal = call.request.run.journal
    return None if journal is None else journal.entered(call.step, target.definition, arguments)


def end_step(call: Call, target: Target, given: Any, result: Failure | Json, effects: Sequence[Effect]) -> None:
    """Append the end of a step to the journal, unless it is a failure that ends the run.

    Raises:
        Failure: See `RunJournal.end_step`.
    """
    journal = call.request.run.journal
    if journal is None or not is_step(call, target) or (isinstance(result, Failure) and result.code in ENDING):
        return
    log = "".join(call.printed)
    journal.end_step(step_of(call), target.definition, given, result, effects, call.began, log)
