"""Calling a primitive: in the workspace as the rules let it see it, for as long as it may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from albert_tools.engine.execute.chain import Chain, Context, Surroundings
from albert_tools.engine.govern.guarded import GuardedWorkspace
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.result import Effect


async def run_primitive(
    primitive: Primitive,
    arguments: dict[str, Any],
    chain: Chain,
    surroundings: Surroundings,
    governance: Governance,
    own: list[Effect],
    clock: Callable[[], float],
) -> Any:
    """Call a primitive that may be called; `own` takes its effects.

    Raises:
        Failure: its own, `timeout`, `run_limit`.
        Exception: a fault of the primitive's.
    """
    name = primitive.name
    left = chain.deadline + chain.spent.waited - clock()
    seconds = min(primitive.definition.timeout, governance.limits.call_seconds, left)
    workspace = surroundings.workspace
    if surroundings.authority is not None:
        policy = surroundings.authority.policy
        seconds = min(seconds, policy.timeout(primitive.definition))
        workspace = GuardedWorkspace(
            workspace,
            partial(policy.path, primitive.definition),
            policy.max_file_bytes(primitive.definition),
            name,
        )
    settings = governance.primitives.get(name, {})
    context = Context(workspace, max(0.0, seconds), settings, name, chain.effects, own)
    if seconds <= 0:
        raise Failure("run_limit", f"no time was left for {name}", hint="split the work over several runs", tool=name)
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
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
            surroundings.modes.violation()
        raise
    except asyncio.CancelledError as stray:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it called itself off") from stray
    except SystemExit as leaving:
        # A function made for a command line; it must not end the service.
        raise RuntimeError(f"it called sys.exit({leaving.code!r})") from leaving
