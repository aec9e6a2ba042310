"""Recover a step that has a beginning but no end in the journal.

Some primitives have a `settle` function that finds out whether the interrupted call took effect. If the call was *applied* and its
result is known, the step ends with that result. If the call was *not applied*, it is made again. Otherwise the outcome is *unknown*
and a person is asked. `settle` gets a read-only workspace and the same time limit as the call. Without `settle`, a step is only
made again if that is harmless.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from albert_tools.engine.authority.approval_digest import objects_hash
from albert_tools.engine.call.arguments import checked_output
from albert_tools.engine.call.budget import spend, spent_by
from albert_tools.engine.call.context import Authorized, Call, PrimitiveContext
from albert_tools.engine.call.errors import describe_fault
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.interrupted import Settled
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.result import Effect
from albert_tools.engine.runs.replay import step_of

if TYPE_CHECKING:
    from albert_tools.engine.call.journal import Step


@dataclass(slots=True)
class _Interrupted(PrimitiveContext):
    """An `InterruptedCall`."""

    arguments: dict[str, Any] = field(default_factory=dict)
    unchanged: bool | None = None


async def state_before(target: Target, authorized: Authorized, call: Call) -> str | None:
    """A hash of the objects that the call will change, for `settle` to compare; None if the primitive does not need the hash."""
    if target.primitive is None or target.primitive.settle is None or not target.primitive.paths:
        return None
    workspace = authorized.workspace(call.request)
    return await asyncio.to_thread(objects_hash, target.primitive, authorized.arguments, workspace)


async def recover(target: Target, authorized: Authorized, step: Step, call: Call, effects: list[Effect]) -> str | None:
    """Find out whether an interrupted step can be repeated. Sets `call.settled`.

    Returns the reason to ask a person first; None if repeating the step is harmless. If the call turns out to
    have had effects, they are added to `effects`.
    """
    primitive = target.primitive
    if primitive is not None and primitive.settle is not None and call.settled is None:
        call.settled = await _settled(primitive, authorized, step, call, effects)
        step.unknown = step.unknown and call.settled.outcome != "not applied" and not call.answered
    if call.settled is not None:
        harmless = call.settled.outcome == "not applied" or call.answered
    else:
        harmless = primitive is None or primitive.repeatable(authorized.arguments)
    if harmless:
        return None
    name = f"{target.definition.name} (step {step_of(call)})"
    if call.settled is not None and call.settled.outcome == "applied":
        return f"{name} was cut short after it was done, and its result is lost; doing it again is doing it twice"
    return f"{name} was cut short, and whether it was done is not known; doing it may be doing it twice"


async def _settled(
    primitive: Primitive, authorized: Authorized, step: Step, call: Call, effects: list[Effect]
) -> Settled:
    problem = None
    found = Settled("unknown")
    try:
        found = await _ask_primitive(primitive, authorized, step, call, effects)
    except TimeoutError:
        problem = "it took too long to find out"
    except Exception as fault:
        problem = fault.message if isinstance(fault, Failure) else describe_fault(fault)
    if found.value is ...:
        effects.clear()
    call.request.effects.extend(effects)
    spend(call.request, **spent_by(effects))
    call.request.recorder.settled(call, primitive.name, found.outcome, problem)
    return found


async def _ask_primitive(
    primitive: Primitive, authorized: Authorized, step: Step, call: Call, effects: list[Effect]
) -> Settled:
    request, definition = call.request, primitive.definition
    arguments, governance, authority = authorized
    assert authority is not None
    workspace = authorized.workspace(request)
    unchanged = None
    if step.before is not None:
        unchanged = await asyncio.to_thread(objects_hash, primitive, arguments, workspace) == step.before
    read_only = authority.guarded(definition, request.workspace)
    read_only.judge.end()
    seconds = min(definition.timeout, governance.limits.call_seconds)
    interrupted = _Interrupted(
        read_only,
        seconds,
        governance.primitives.get(primitive.name, {}),
        f"{request.run.id}:{call.step}",
        request.context.contents,
        None,
        request.context.resource_pool,
        primitive.name,
        [],
        effects,
        artifacts=request.context.artifacts,
        arguments=dict(arguments),
        unchanged=unchanged,
    )
    async with asyncio.timeout(seconds):
        found = await primitive.settled(interrupted)
    if found.outcome == "applied" and found.value is not ...:
        return Settled("applied", checked_output(definition, found.value))
    return Settled(found.outcome)
