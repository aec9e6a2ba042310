"""A call as a step of its run: found in the run's journal when the run goes on, and written there when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from albert_tools.engine.call.context import Chain
from albert_tools.engine.call.errors import tell
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.error_codes import ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import Effect
from albert_tools.engine.runs.journal import Entered, Step


def is_step(chain: Chain, target: Target) -> bool:
    """Whether it is a step of the run: a program's call, or the one call of a run that is no program's."""
    return chain.depth > 0 or target.primitive is not None


def step_of(chain: Chain) -> str:
    return chain.step or "0"


def replayed(chain: Chain, target: Target, given: Any) -> Step | None:
    """What the run's journal has of this step.

    Raises:
        Failure: `diverged`.
    """
    steps = chain.request.run.steps
    if steps is None:
        return None
    # What was asked for from outside is what the header says, so it can't be anything else.
    asked = given if chain.depth else None
    return steps.find(step_of(chain), target.definition.name, target.definition.version, asked)


def recorded(known: Step, chain: Chain, tool: str, below: str) -> Json:
    """A step that has ended ends as it did; its effects and prints are the run's, and it isn't charged again."""
    request = chain.request
    if known.log:
        request.printed_bytes += len(known.log.encode())
        request.printed.append(known.log)
        chain.printed.append(known.log)
        tell(request.log, tool, known.log)
    request.effects.extend(known.effects)
    if below and request.run.steps is not None:
        for step in request.run.steps.below(below):
            request.effects.extend(step.effects)
            request.calls += 1
    if known.failure is not None:
        raise replace(known.failure)
    return known.value


def unrecorded(chain: Chain, name: str, given: Any) -> Failure:
    return Failure(
        "diverged",
        f"the journal ends here: step {step_of(chain)}, {name}, was never made",
        hint="up to here the program does what was recorded",
        tool=name,
        details={"step": step_of(chain), "program": {"tool": name, "arguments": given}},
    )


def entered(target: Target, arguments: Json, chain: Chain) -> Entered | None:
    steps = chain.request.run.steps
    return None if steps is None else steps.entered(chain.step, target.definition, arguments)


def journal_end(chain: Chain, target: Target, given: Any, came: Failure | Json, own: Sequence[Effect]) -> None:
    steps = chain.request.run.steps
    if steps is None or not is_step(chain, target) or (isinstance(came, Failure) and came.code in ENDING):
        return
    # What the run's own program prints it prints again as it is gone through.
    steps.ended(step_of(chain), target.definition, given, came, own, chain.began, "".join(chain.printed))
