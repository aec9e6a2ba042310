"""Call a primitive with its locks and a time limit, either in the guarded workspace or confined.

A transient failure is retried once, after a short pause, if the call is idempotent and has had no effect yet.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from msgspec import to_builtins

from albert_tools.engine.authority.approval_digest import demand_as_approved
from albert_tools.engine.call.budget import seconds_for, spent_by
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.call.primitive_context import PrimitiveContext
from albert_tools.engine.model.bounds import MAX_READ
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.result import Effect
from albert_tools.engine.workspace.workspace import Workspace

#: The codes that are retried if the failure is marked as retryable.
TRANSIENT = frozenset({"network_error", "io_error", "timeout"})
#: The longest pause before the second attempt, in seconds. The pause is random, so that many calls don't retry simultaneously.
MAX_BACKOFF = 0.5
#: The most seconds that a preview of a call may take.
MAX_PREVIEW = 30.0


async def run_primitive(primitive: Primitive, call: Call, run: Run) -> Any:
    """Call an authorized primitive.

    Raises:
        Failure: The primitive's own failure; `timeout`, `run_limit`, `budget_exceeded`.
        Exception: A fault of the primitive.
    """
    try:
        return await _once(primitive, call, run)
    except Failure as failure:
        if not _can_retry(primitive, call, failure):
            raise
    from random import uniform  # A process that retries nothing need not load it.

    await asyncio.sleep(uniform(0, MAX_BACKOFF))
    call.report.retried += 1
    return await _once(primitive, call, run)


def _can_retry(primitive: Primitive, call: Call, failure: Failure) -> bool:
    again = primitive.repeatable(call.arguments)
    return failure.retryable and failure.code in TRANSIENT and again and not call.report.effects


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


async def _once(primitive: Primitive, call: Call, run: Run) -> Any:
    name, definition = primitive.name, primitive.definition
    governance, authority = call.rules
    seconds = seconds_for(call, run)
    settings = governance.primitives.get(name, {})
    if settings and not callable(primitive.settings):
        _check_settings(primitive, settings)
    workspace = authority.reaching(run.workspace)
    # This copies: the function may change its arguments, and those of the call are recorded at its end.
    arguments = to_builtins(primitive.given(call.arguments))
    timer = asyncio.timeout(seconds)
    locks = _locks(primitive, call, run, workspace)
    try:
        async with timer, run.service.resource_locks.hold(locks) if locks else nullcontext():
            if call.approved:
                demand_as_approved(workspace, call.approved, name)
            if primitive.context is not None:
                return await _with_context(primitive, arguments, call, run, seconds, settings)
            if definition.sandbox:
                from albert_tools.engine.sandbox.worker.confined_function import run_confined

                if primitive.paths:
                    arguments = await asyncio.to_thread(_with_contents, primitive, arguments, call, run)
                return await run_confined(primitive.function, arguments, seconds=seconds)
            return await call_primitive(primitive, arguments, None)
    except TimeoutError:
        # The primitive itself can raise a TimeoutError, for example from a socket.
        if not timer.expired():
            raise
        raise Failure(
            "timeout",
            f"{name} did not answer within {seconds:.3g} s",
            hint="ask for less in one call; it may have had an effect",
            tool=name,
            details={"seconds": round(seconds, 3)},
        ) from None
    except Failure as failure:
        failure.tool = failure.tool or name
        if failure.rule == "outside_workspace":
            # A link leads out of the workspace. This is only detected when the file is opened.
            run.service.modes.violation()
        raise
    except asyncio.CancelledError as stray:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it cancelled itself") from stray
    except SystemExit as leaving:
        # The function was written for a command line. Its exit must not end the service.
        raise RuntimeError(f"it called sys.exit({leaving.code!r})") from leaving


async def preview_of(call: Call, run: Run) -> str:
    """What a call will change, for the question to a person; "" if its primitive can't say so.

    Raises:
        Failure: `permission_denied`: the call would be refused.
    """
    primitive = call.target.primitive
    if primitive is None or primitive.preview is None:
        return ""
    governance, authority = call.rules
    guarded = authority.guarded(primitive.definition, run.workspace)
    settings = governance.primitives.get(primitive.name, {})
    context = _PreviewContext(guarded, MAX_PREVIEW, settings, None, call, run)
    try:
        return await primitive.preview(context, to_builtins(call.arguments))
    except Failure as failure:
        if failure.code != "permission_denied":
            # The call will report it.
            return ""
        raise


class _PreviewContext(PrimitiveContext):
    """The context of a preview, which changes nothing, so nothing is recorded."""

    def effect(self, kind: str, **facts: Any) -> None:
        pass


async def _with_context(
    primitive: Primitive,
    arguments: dict[str, Any],
    call: Call,
    run: Run,
    seconds: float,
    settings: Mapping[str, Any],
) -> Any:
    """Call a primitive that takes a context, and charge its effects."""
    definition = primitive.definition
    authority, outgoing = call.rules.authority, None
    if "network" in definition.effects:
        outgoing = authority.outgoing(definition, primitive, call.arguments)
    # Only a session remembers what it has seen, and once is enough.
    marks = None if run.session.id is None else lambda: "private" not in run.session.seen()
    guarded = authority.guarded(definition, run.workspace, _room(primitive, run), call.approved, marks)
    context = PrimitiveContext(guarded, seconds, settings, outgoing, call, run)
    try:
        return await call_primitive(primitive, arguments, context)
    finally:
        guarded.judge.end()
        context.note_read()
        used = spent_by(call.report.effects)
        used["bytes_written"] = max(guarded.judge.bytes_written, used.get("bytes_written", 0))
        run.session.spend(**used)


def _with_contents(primitive: Primitive, arguments: dict[str, Any], call: Call, run: Run) -> dict[str, Any]:
    """The arguments of a function that runs confined, with the content of each file in place of its path.

    Raises:
        Failure: The rules forbid to read a file, or it can't be read.
    """
    definition = primitive.definition
    guarded = call.rules.authority.guarded(definition, run.workspace, None, call.approved)
    given = dict(arguments)
    try:
        for name, path in arguments.items():
            if name in primitive.paths and path is not None:
                with guarded.open(path) as file:
                    given[name] = file.read(MAX_READ)
                    facts = {"size_bytes": len(given[name]), "sha256": hashlib.sha256(given[name]).hexdigest()}
                    effect = Effect("read", definition.name, {"path": file.path, **facts})
                run.report.effects.append(effect)
                call.report.effects.append(effect)
    finally:
        guarded.judge.end()
        call.report.private_path = guarded.judge.private_path or call.report.private_path
    return given


def _locks(primitive: Primitive, call: Call, run: Run, workspace: Workspace) -> list[str]:
    """Names of locks on what the call changes: its paths, and the limited budgets that it may use.

    Without a lock on a budget, two calls could both use the same remainder. The bytes that a command writes are not counted, so
    commands need no lock.
    """
    definition = primitive.definition
    if definition.only_reads and definition.category != "inference":
        return []
    paths = [str(workspace.absolute(path)) for path, use in primitive.paths_in(call.arguments) if use != "read"]
    units = []
    if "write" in definition.effects and "execute" not in definition.effects:
        units.append("bytes_written")
    if definition.category == "inference":
        units += ["model_tokens", "model_cost"]
    return [*paths, *(f"{unit} of {session}" for unit in units for session in run.session.bounded(unit))]


def _room(primitive: Primitive, run: Run) -> int | None:
    """The number of bytes that the budget lets the call write. The call has locked the budget."""
    declared = primitive.definition.effects
    if "write" not in declared or "execute" in declared or not run.session.bounded("bytes_written"):
        return None
    return int(run.session.left("bytes_written"))
