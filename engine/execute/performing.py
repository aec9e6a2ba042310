"""Calling a primitive: in the workspace as the rules let it see it, in its turn, for as long as it may take.

A failure that a second try may mend is tried once more, after a moment, if doing it twice is the same as doing it once; any other
isn't.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from albert_tools.engine.execute.chain import Chain, Context
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.result import Effect
from albert_tools.engine.sandbox.domain import export
from albert_tools.engine.sandbox.pool import MAX_ANSWER

if TYPE_CHECKING:
    from albert_tools.engine.govern.authority import Authority

#: Codes that can be another's next time; the failure itself must say so, too.
TRANSIENT = frozenset({"network_error", "io_error", "timeout"})
#: Seconds of the wait before the second try: anything up to this, so that many don't come back at once.
MAX_BACKOFF = 0.5


async def run_primitive(
    primitive: Primitive,
    arguments: dict[str, Any],
    chain: Chain,
    governance: Governance,
    authority: Authority | None,
    own: list[Effect],
    clock: Callable[[], float],
) -> Any:
    """Call a primitive that may be called; `own` takes its effects.

    Raises:
        Failure: its own, `timeout`, `run_limit`, `budget_exceeded`.
        Exception: a fault of the primitive's.
    """
    if primitive.definition.cache_seconds and chain.request.surroundings.cache is not None:
        return await _cached(primitive, arguments, chain, governance, authority, own, clock)
    return await _tried(primitive, arguments, chain, governance, authority, own, clock)


async def _cached(
    primitive: Primitive,
    arguments: dict[str, Any],
    chain: Chain,
    governance: Governance,
    authority: Authority | None,
    own: list[Effect],
    clock: Callable[[], float],
) -> Any:
    from albert_tools.engine.execute.caching import key_of

    request = chain.request
    cache = request.surroundings.cache
    assert cache is not None
    workspace = request.workspace if authority is None else authority.reaching(request.workspace)
    key = await asyncio.to_thread(key_of, primitive, arguments, workspace)
    found = cache.find(key)
    if found is None:
        output = await _tried(primitive, arguments, chain, governance, authority, own, clock)
        cache.keep(key, primitive.definition.cache_seconds, export(output, MAX_ANSWER), tuple(own))
        return output
    own.extend(found[1])
    request.effects.extend(found[1])
    return found[0]


async def _tried(
    primitive: Primitive,
    arguments: dict[str, Any],
    chain: Chain,
    governance: Governance,
    authority: Authority | None,
    own: list[Effect],
    clock: Callable[[], float],
) -> Any:
    """Once, and where it is worth it once more."""
    try:
        return await _once(primitive, arguments, chain, governance, authority, own, clock)
    except Failure as failure:
        if not _worth_another(primitive, failure, own):
            raise
    await asyncio.sleep(random.uniform(0, MAX_BACKOFF))
    chain.retried += 1
    return await _once(primitive, arguments, chain, governance, authority, own, clock)


def _worth_another(primitive: Primitive, failure: Failure, own: list[Effect]) -> bool:
    again = primitive.definition.idempotent or set(primitive.definition.effects) <= {"read"}
    return failure.retryable and failure.code in TRANSIENT and again and not own


async def _once(
    primitive: Primitive,
    arguments: dict[str, Any],
    chain: Chain,
    governance: Governance,
    authority: Authority | None,
    own: list[Effect],
    clock: Callable[[], float],
) -> Any:
    name, request = primitive.name, chain.request
    left = chain.deadline + request.waited - clock()
    seconds = min(primitive.definition.timeout, governance.limits.call_seconds, left)
    workspace: Any = request.workspace
    of_budget: int | None = None
    if authority is not None:
        policy = authority.policy
        seconds = min(seconds, policy.timeout(primitive.definition))
        if request.session is not None and request.surroundings.sessions is not None:
            rest = request.surroundings.sessions.left(request.session, "bytes_written")
            if "write" in primitive.definition.effects and rest < policy.max_file_bytes(primitive.definition):
                of_budget = int(rest)
        workspace = authority.guarded(primitive.definition, workspace, most=of_budget)
    if seconds <= 0:
        raise Failure("run_limit", f"no time was left for {name}", hint="split the work over several runs", tool=name)
    context = Context(
        workspace,
        seconds,
        governance.primitives.get(name, {}),
        f"{request.run.id}:{chain.step}",
        request.surroundings.contents,
        name,
        request.effects,
        own,
    )
    timer = asyncio.timeout(seconds)
    turns = request.surroundings.turns
    changed = _changed(primitive, arguments, workspace) if turns is not None and primitive.paths else None
    try:
        async with timer:
            if not changed or turns is None:
                return await call_primitive(primitive, arguments, context)
            async with turns.of(changed):
                return await call_primitive(primitive, arguments, context)
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
        if failure.rule == "max_file_size_mb" and of_budget is not None:
            raise Failure(
                "budget_exceeded",
                f"{name} would write more than the {of_budget:,} bytes that the session's budget has left",
                hint="what is left to do needs a session with a larger budget",
                rule="lease.budget.bytes_written",
                tool=name,
            ) from None
        raise
    except asyncio.CancelledError as stray:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it called itself off") from stray
    except SystemExit as leaving:
        # A function made for a command line; it must not end the service.
        raise RuntimeError(f"it called sys.exit({leaving.code!r})") from leaving


def _changed(primitive: Primitive, arguments: dict[str, Any], workspace: Any) -> list[str]:
    """What the call changes: paths as the workspace spells them, which is one way only."""
    found = []
    for name, use in primitive.paths.items():
        if use != "read":
            value = arguments.get(name)
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, str):
                    found.append(str(workspace.absolute(path or ".")))
    return found
