"""The stage `recover`, for resumed runs: recover a step that began and has no end in the journal.

Some primitives have a `settle` function that finds out whether the interrupted call took effect. If the call was *applied* and its
result is known, the step ends with that result. If the call was *not applied*, it is made again. Otherwise the outcome is *unknown*
and a person is asked. `settle` gets a read-only workspace and the same time limit as the call. Without `settle`, a step is only
made again if that is harmless.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import field
from msgspec.structs import replace

from albert_tools.engine.authority.approval_digest import objects_hash
from albert_tools.engine.call import ledger
from albert_tools.engine.call.budget import spent_by
from albert_tools.engine.call.context import Call, Known, Run
from albert_tools.engine.call.outputs import accepted_output
from albert_tools.engine.call.primitive_context import PrimitiveContext
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.interrupted import Settled
from albert_tools.engine.model.messages import describe_fault
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.policy.decision import Decision, strictest

if TYPE_CHECKING:
    from albert_tools.engine.call.journal import Step


class _Interrupted(PrimitiveContext):
    """An `InterruptedCall`."""

    arguments: dict[str, Any] = field(default_factory=dict)
    unchanged: bool | None = None


async def state_before(call: Call, run: Run) -> str | None:
    """A hash of the objects that the call will change, for `settle` to compare; None if the primitive does not need the hash."""
    primitive = call.target.primitive
    if primitive is None or primitive.settle is None or not primitive.paths:
        return None
    workspace = call.rules.authority.reaching(run.workspace)
    return await asyncio.to_thread(objects_hash, primitive, call.arguments, workspace)


async def recover(call: Call, run: Run) -> Call:
    """Find out whether an interrupted step can be made again. If this may do it twice, a person is asked.

    Raises:
        Known: The step was applied, and its result is known. Its effects are added to the run.
    """
    step, primitive = call.interrupted, call.target.primitive
    if step is None:
        return call
    name = f"{call.name} (step {call.place})"
    if primitive is not None and primitive.settle is not None:
        settled = step.settled = step.settled or await _settled(primitive, step, call, run)
        known = settled.value is not ...
        step.unknown = step.unknown and settled.outcome != "not applied" and not known
        if known:
            raise Known(settled.value)
        if settled.outcome == "not applied":
            return call
    elif primitive is None or primitive.repeatable(call.arguments):
        return call
    if step.settled is not None and step.settled.outcome == "applied":
        problem = f"{name} was interrupted after it was done, and its result is lost; making it again does it twice"
    else:
        problem = f"{name} was interrupted, and whether it was done is not known; making it again may do it twice"
    hint = "check whether it was done before you answer yes"
    asking = Decision("ask", "interrupted", "interrupted", problem, hint)
    return replace(call, decision=strictest([asking, call.decision]), asks=(*call.asks, ("interrupted", call.id)))


async def _settled(primitive: Primitive, step: Step, call: Call, run: Run) -> Settled:
    problem = None
    answer = Settled("unknown")
    effects = call.report.effects
    try:
        answer = await _ask_primitive(primitive, step, call, run)
    except TimeoutError:
        problem = "its `settle` function has timed out"
    except Exception as fault:
        problem = fault.message if isinstance(fault, Failure) else describe_fault(fault)
    if answer.value is ...:
        # Only the effects of a known result belong to the run.
        for effect in effects:
            run.report.effects.remove(effect)
        effects.clear()
    run.session.spend(**spent_by(effects))
    ledger.settled(call, run, answer.outcome, problem)
    return answer


async def _ask_primitive(primitive: Primitive, step: Step, call: Call, run: Run) -> Settled:
    definition, rules = primitive.definition, call.rules
    unchanged = None
    if step.before is not None:
        workspace = rules.authority.reaching(run.workspace)
        unchanged = await asyncio.to_thread(objects_hash, primitive, call.arguments, workspace) == step.before
    read_only = rules.authority.guarded(definition, run.workspace)
    read_only.judge.end()
    seconds = min(definition.timeout, rules.governance.limits.call_seconds)
    interrupted = _Interrupted(
        read_only,
        seconds,
        rules.governance.primitives.get(primitive.name, {}),
        None,
        call,
        run,
        arguments=dict(call.arguments),
        unchanged=unchanged,
    )
    async with asyncio.timeout(seconds):
        answer = await primitive.settled(interrupted)
    if answer.outcome == "applied" and answer.value is not ...:
        return Settled("applied", accepted_output(call, run, answer.value))
    return Settled(answer.outcome)
