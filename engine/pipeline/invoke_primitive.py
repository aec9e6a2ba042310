"""Calling a primitive: in the workspace as the rules let it see it, in its turn, for as long as it may take; or confined.

A failure that a second try may mend is tried once more, after a moment, if doing it twice is the same as doing it once; any other
isn't.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from albert_tools.engine.authority.approval_digest import demand_as_approved
from albert_tools.engine.call.budget import left, spend, spent_by
from albert_tools.engine.call.context import Chain, Context, Judged, Request
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.result import Effect

#: Codes that can be another's next time; the failure itself must say so, too.
TRANSIENT = frozenset({"network_error", "io_error", "timeout"})
#: Seconds of the wait before the second try: anything up to this, so that many don't come back at once.
MAX_BACKOFF = 0.5


async def run_primitive(
    primitive: Primitive, judged: Judged, chain: Chain, own: list[Effect], clock: Callable[[], float]
) -> Any:
    """Call a primitive that may be called; `own` takes its effects.

    Raises:
        Failure: its own, `timeout`, `run_limit`, `budget_exceeded`.
        Exception: a fault of the primitive's.
    """
    try:
        return await _once(primitive, judged, chain, own, clock)
    except Failure as failure:
        if not _worth_another(primitive, judged.arguments, failure, own):
            raise
    await asyncio.sleep(random.uniform(0, MAX_BACKOFF))
    chain.retried += 1
    return await _once(primitive, judged, chain, own, clock)


def _worth_another(primitive: Primitive, arguments: dict[str, Any], failure: Failure, own: list[Effect]) -> bool:
    again = primitive.repeatable(arguments)
    return failure.retryable and failure.code in TRANSIENT and again and not own


def _demand_sound(primitive: Primitive, settings: Mapping[str, Any]) -> None:
    """That the owner's settings can be followed: a misspelt one may have been meant to bound.

    Raises:
        Failure: `permission_denied`.
    """
    for place, message in primitive.wrong_settings(settings):
        place = f"primitives.{primitive.name}.{place}"
        raise Failure(
            "permission_denied",
            f"the owner's rules have a mistake at {place}: {message}",
            hint="the owner should mend it; `albert policy check` tells all mistakes",
            rule=place,
            tool=primitive.name,
        )


async def _once(
    primitive: Primitive, judged: Judged, chain: Chain, own: list[Effect], clock: Callable[[], float]
) -> Any:
    name, request = primitive.name, chain.request
    arguments, governance, authority = judged
    until = chain.deadline + request.waited - clock()
    seconds = min(primitive.definition.timeout, governance.limits.call_seconds, until)
    workspace = judged.workspace(request)
    if authority is not None:
        seconds = min(seconds, authority.policy.timeout(primitive.definition))
    if seconds <= 0:
        raise Failure("run_limit", f"no time was left for {name}", hint="split the work over several runs", tool=name)
    settings = governance.primitives.get(name, {})
    if settings and not callable(primitive.settings):
        _demand_sound(primitive, settings)

    async def call() -> Any:
        if primitive.context is None:
            # It is given neither a workspace nor anything to say what it does with.
            if chain.approved:
                demand_as_approved(workspace, chain.approved, name)
            if primitive.definition.sandbox:
                from albert_tools.engine.sandbox.worker.confined_function import run_confined

                return await run_confined(primitive.function, arguments, seconds=seconds)
            return await call_primitive(primitive, arguments, None)
        guarded: Any = workspace
        outgoing = None
        if authority is not None:
            if "network" in primitive.definition.effects:
                outgoing = authority.outgoing(primitive.definition, primitive, arguments, governance)
            guarded = authority.guarded(
                primitive.definition, request.workspace, _room(primitive, request), chain.approved
            )
            if chain.approved:
                demand_as_approved(workspace, chain.approved, name)
        context = Context(
            guarded,
            seconds,
            settings,
            f"{request.run.id}:{chain.step}",
            request.surroundings.contents,
            outgoing,
            request.surroundings.kept,
            name,
            request.effects,
            own,
            artifacts=request.surroundings.artifacts,
            examine=request.surroundings.examine,
            _left=partial(left, request),
        )
        try:
            return await call_primitive(primitive, arguments, context)
        finally:
            used = spent_by(own)
            if authority is not None:
                guarded.judge.end()
                used["bytes_written"] = max(guarded.judge.bytes_written, used.get("bytes_written", 0))
            spend(request, **used)

    timer = asyncio.timeout(seconds)
    turns = request.surroundings.turns
    taken = [] if turns is None else [*_changed(primitive, arguments, workspace), *_budgets(primitive, request)]
    try:
        async with timer:
            if not taken or turns is None:
                return await call()
            async with turns.of(taken):
                return await call()
    except TimeoutError:
        # One that the primitive raises by itself, of a socket perhaps, says nothing about our clock.
        if not timer.expired():
            raise
        raise Failure(
            "timeout",
            f"{name} did not answer within {seconds:.3g} s",
            hint="ask for less at once; whether it did anything is not known",
            tool=name,
            details={"seconds": round(seconds, 3)},
        ) from None
    except Failure as failure:
        failure.tool = failure.tool or name
        if failure.rule == "outside_workspace":
            # Led out by a link, which only the opening finds.
            request.surroundings.modes.violation()
        raise
    except asyncio.CancelledError as stray:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it called itself off") from stray
    except SystemExit as leaving:
        # A function made for a command line; it must not end the service.
        raise RuntimeError(f"it called sys.exit({leaving.code!r})") from leaving


def _budgets(primitive: Primitive, request: Request) -> list[str]:
    """The budgets that the call may draw on, by name: what is left of each is one call's at a time.

    What a command writes isn't seen, so it isn't counted, and no other call has to wait for it.
    """
    definition = primitive.definition
    found = []
    if "write" in definition.effects and "execute" not in definition.effects:
        found += _bounding(request, "bytes_written", "bytes")
    if definition.category == "inference":
        found += [*_bounding(request, "model_tokens", "tokens"), *_bounding(request, "model_cost", "cost")]
    return found


def _bounding(request: Request, unit: str, called: str) -> list[str]:
    sessions = request.surroundings.sessions
    if request.session is None or sessions is None:
        return []
    return [f"{called} of {session}" for session in sessions.bounded(request.session, unit)]


def _room(primitive: Primitive, request: Request) -> int | None:
    """The bytes that the budget has left for the call, which has its turn."""
    effects = primitive.definition.effects
    if "write" not in effects or "execute" in effects or not _bounding(request, "bytes_written", "bytes"):
        return None
    return int(left(request, "bytes_written"))


def _changed(primitive: Primitive, arguments: dict[str, Any], workspace: Any) -> list[str]:
    """What the call changes: paths as the workspace spells them, which is one way only."""
    return [str(workspace.absolute(path)) for path, use in primitive.paths_in(arguments) if use != "read"]
