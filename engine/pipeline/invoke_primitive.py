"""Call a primitive with its locks and a time limit, either in the guarded workspace or confined.

A transient failure is retried once, after a short pause, if the call is idempotent and has had no effect yet.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from albert_tools.engine.authority.approval_digest import demand_as_approved
from albert_tools.engine.call.budget import left, spend, spent_by
from albert_tools.engine.call.context import Authorized, Call, PrimitiveContext, Request
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.result import Effect

#: The codes that are retried if the failure is marked as retryable.
TRANSIENT = frozenset({"network_error", "io_error", "timeout"})
#: The longest pause before the second attempt, in seconds. The pause is random, so that many calls don't retry simultaneously.
MAX_BACKOFF = 0.5


async def run_primitive(
    primitive: Primitive, authorized: Authorized, call: Call, effects: list[Effect], clock: Callable[[], float]
) -> Any:
    """Call an authorized primitive and add its effects to `effects`.

    Raises:
        Failure: The primitive's own failure; `timeout`, `run_limit`, `budget_exceeded`.
        Exception: A fault of the primitive.
    """
    try:
        return await _once(primitive, authorized, call, effects, clock)
    except Failure as failure:
        if not _can_retry(primitive, authorized.arguments, failure, effects):
            raise
    await asyncio.sleep(random.uniform(0, MAX_BACKOFF))
    call.retried += 1
    return await _once(primitive, authorized, call, effects, clock)


def _can_retry(primitive: Primitive, arguments: dict[str, Any], failure: Failure, effects: list[Effect]) -> bool:
    again = primitive.repeatable(arguments)
    return failure.retryable and failure.code in TRANSIENT and again and not effects


def _check_settings(primitive: Primitive, settings: Mapping[str, Any]) -> None:
    """Check the owner's settings of the primitive. A misspelt setting may be a limit, so it denies the call.

    Raises:
        Failure: `permission_denied`.
    """
    for place, message in primitive.wrong_settings(settings):
        place = f"primitives.{primitive.name}.{place}"
        raise Failure(
            "permission_denied",
            f"the owner's rules have a mistake at {place}: {message}",
            hint="the owner should correct it; `albert policy check` lists all mistakes",
            rule=place,
            tool=primitive.name,
        )


async def _once(
    primitive: Primitive, authorized: Authorized, call: Call, effects: list[Effect], clock: Callable[[], float]
) -> Any:
    name, request = primitive.name, call.request
    arguments, governance, authority = authorized
    until = call.deadline + request.waited - clock()
    seconds = min(primitive.definition.timeout, governance.limits.call_seconds, until)
    workspace = authorized.workspace(request)
    if authority is not None:
        seconds = min(seconds, authority.policy.timeout(primitive.definition))
    if seconds <= 0:
        raise Failure("run_limit", f"no time was left for {name}", hint="split the work over several runs", tool=name)
    settings = governance.primitives.get(name, {})
    if settings and not callable(primitive.settings):
        _check_settings(primitive, settings)

    async def run() -> Any:
        if primitive.context is None:
            if call.approved:
                demand_as_approved(workspace, call.approved, name)
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
                primitive.definition, request.workspace, _room(primitive, request), call.approved
            )
            if call.approved:
                demand_as_approved(workspace, call.approved, name)
        context = PrimitiveContext(
            guarded,
            seconds,
            settings,
            f"{request.run.id}:{call.step}",
            request.context.contents,
            outgoing,
            request.context.resource_pool,
            name,
            request.effects,
            effects,
            artifacts=request.context.artifacts,
            examine=request.context.examine,
            _left=partial(left, request),
        )
        try:
            return await call_primitive(primitive, arguments, context)
        finally:
            used = spent_by(effects)
            if authority is not None:
                guarded.judge.end()
                used["bytes_written"] = max(guarded.judge.bytes_written, used.get("bytes_written", 0))
            spend(request, **used)

    timer = asyncio.timeout(seconds)
    locks = [*_changed_paths(primitive, arguments, workspace), *_budget_locks(primitive, request)]
    try:
        async with timer, request.context.resource_locks.hold(locks):
            return await run()
    except TimeoutError:
        # The primitive itself can raise a TimeoutError, for example from a socket.
        if not timer.expired():
            raise
        raise Failure(
            "timeout",
            f"{name} did not answer within {seconds:.3g} s",
            hint="ask for less in one call; whether it had an effect is not known",
            tool=name,
            details={"seconds": round(seconds, 3)},
        ) from None
    except Failure as failure:
        failure.tool = failure.tool or name
        if failure.rule == "outside_workspace":
            # A link leads out of the workspace. This is only detected when the file is opened.
            request.context.modes.violation()
        raise
    except asyncio.CancelledError as stray:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it cancelled itself") from stray
    except SystemExit as leaving:
        # The function was written for a command line. Its exit must not end the service.
        raise RuntimeError(f"it called sys.exit({leaving.code!r})") from leaving


def _budget_locks(primitive: Primitive, request: Request) -> list[str]:
    """Locks on the limited budgets that the call may use. Without them, two calls could both use the same remainder.

    The bytes that a command writes are not counted, so commands need no lock.
    """
    definition = primitive.definition
    found = []
    if "write" in definition.effects and "execute" not in definition.effects:
        found += _bounded_sessions(request, "bytes_written", "bytes")
    if definition.category == "inference":
        found += [
            *_bounded_sessions(request, "model_tokens", "tokens"),
            *_bounded_sessions(request, "model_cost", "cost"),
        ]
    return found


def _bounded_sessions(request: Request, unit: str, label: str) -> list[str]:
    """A lock name for each session with a limited budget for `unit`: the request's session and its parent sessions."""
    sessions = request.context.sessions
    if request.session is None or sessions is None:
        return []
    return [f"{label} of {session}" for session in sessions.bounded(request.session, unit)]


def _room(primitive: Primitive, request: Request) -> int | None:
    """The number of bytes that the budget lets the call write. The call has locked the budget."""
    declared = primitive.definition.effects
    if "write" not in declared or "execute" in declared or not _bounded_sessions(request, "bytes_written", "bytes"):
        return None
    return int(left(request, "bytes_written"))


def _changed_paths(primitive: Primitive, arguments: dict[str, Any], workspace: Any) -> list[str]:
    """The absolute and canonical paths that the call changes."""
    return [str(workspace.absolute(path)) for path, use in primitive.paths_in(arguments) if use != "read"]
