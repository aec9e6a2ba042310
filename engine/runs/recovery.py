"""Finding out what became of a step that was cut short, by asking its primitive.

The answer is one of three: it was *applied*, and then the step ends with what it gave, without being done again; it was
*not applied*, and then it is made as if it had never been begun; or nobody knows, and a person is asked. The primitive is given
a workspace that can't be written to, and as much time as for the call itself. A primitive that fails to answer doesn't know.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from albert_tools.engine.authority.approval_digest import standing_objects
from albert_tools.engine.call.arguments import promised
from albert_tools.engine.call.budget import spend, spent_by
from albert_tools.engine.call.context import Chain, Context, Judged
from albert_tools.engine.call.errors import told
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.interrupted import OUTCOMES, Settled
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.result import Effect

if TYPE_CHECKING:
    from albert_tools.engine.runs.journal import Step


@dataclass(slots=True)
class _Interrupted(Context):
    """An `InterruptedCall`."""

    arguments: dict[str, Any] = field(default_factory=dict)
    unchanged: bool | None = None


async def settle(primitive: Primitive, judged: Judged, known: Step, chain: Chain, own: list[Effect]) -> Settled:
    """What became of a call that `known` says was begun; `own` takes the effects that it turns out to have had."""
    problem = None
    found = Settled("unknown")
    try:
        found = await _asked(primitive, judged, known, chain, own)
    except TimeoutError:
        problem = "it took too long to find out"
    except Exception as fault:
        problem = fault.message if isinstance(fault, Failure) else told(fault)
    if found.value is ...:
        own.clear()
    chain.request.effects.extend(own)
    spend(chain.request, **spent_by(own))
    chain.request.recorder.settled(chain.call, primitive.name, found.outcome, problem)
    return found


async def _asked(primitive: Primitive, judged: Judged, known: Step, chain: Chain, own: list[Effect]) -> Settled:
    request, definition, asked = chain.request, primitive.definition, primitive.settle
    arguments, governance, authority = judged
    assert asked is not None
    assert authority is not None
    workspace = judged.workspace(request)
    unchanged = None
    if known.before is not None:
        unchanged = await asyncio.to_thread(standing_objects, primitive, arguments, workspace) == known.before
    guarded = authority.guarded(definition, request.workspace)
    # Finding out changes nothing.
    guarded.judge.end()
    seconds = min(definition.timeout, governance.limits.call_seconds)
    call = _Interrupted(
        guarded,
        seconds,
        governance.primitives.get(primitive.name, {}),
        f"{request.run.id}:{chain.step}",
        request.surroundings.contents,
        None,
        request.surroundings.kept,
        primitive.name,
        [],
        own,
        artifacts=request.surroundings.artifacts,
        arguments=dict(arguments),
        unchanged=unchanged,
    )
    async with asyncio.timeout(seconds):
        if inspect.iscoroutinefunction(asked):
            found = await asked(call)
        else:
            found = await asyncio.to_thread(asked, call)
    if not isinstance(found, Settled) or found.outcome not in OUTCOMES:
        raise TypeError(f"{found!r} is no `Settled`")
    if found.outcome == "applied" and found.value is not ...:
        return Settled("applied", promised(definition, found.value))
    return Settled(found.outcome)
