"""The first stage: look up the tool. Before that, the lease must cover its name, so nothing is said about other tools."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.call.errors import shown
from albert_tools.engine.call.target import Target, target_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline.session import find_session


async def lookup(call: Call, run: Run) -> Call:
    """Find the primitive or the saved version that the call names.

    Raises:
        Failure: `unknown_tool`, `damaged`, `io_error`, `invalid_arguments`; `outdated` for a version that can't be analysed
            again; `permission_denied` for a call that the checker has not seen in the program, and for a name outside of the
            session's lease, whether or not there is such a tool.
    """
    if not call.depth and run.invocation.session is not None:
        find_session(run)
        if run.options.action is None and run.options.unsaved is None:
            run.session.demand(str(call.tool), author=lambda: run.lookup.author(call.tool, call.version))
    if not call.pinned:
        caller = call.callers[-1]
        raise Failure(
            "permission_denied", f"{caller} was not checked to call {shown(call.tool)}", rule="pins", tool=caller
        )
    if call.depth:
        return replace(call, target=await _current(run.lookup.look_up(call.tool, call.version), run))
    if run.options.action is not None:
        run.target = target_of(run.options.action)
    else:
        target = run.lookup.look_up(call.tool, call.version, run.options.unsaved, run.session.covers)
        run.target = await _current(target, run)
    return replace(call, target=run.target)


async def _current(target: Target, run: Run) -> Target:
    """The target with a manifest of the present analysis. All stages see this one."""
    if target.version is None or target.version.is_current:
        return target
    version = await run.renewed(target.version, target.version is not run.options.unsaved)
    return replace(target, definition=version.definition, version=version)


def demand_depth(tool: str, depth: int, most: int) -> None:
    """Require that saved tools are nested at most `most` deep.

    Raises:
        Failure: `depth_limit`.
    """
    if depth > most:
        raise Failure(
            "depth_limit",
            f"saved tools call each other more than {most} levels deep",
            hint="call the inner tools directly; the limit is the owner's rule `limits.depth`",
            tool=tool,
        )


def demand_limits(call: Call, run: Run) -> None:
    """Check the number of calls in the run and the depth of a call, by the limits of its caller. Refused calls count, too.

    Raises:
        Failure: `call_limit`, `depth_limit`.
    """
    limits = call.rules.governance.limits
    if call.target.version is not None:
        demand_depth(call.name, call.depth + 1, limits.depth)
    if run.report.calls > limits.calls:
        raise Failure(
            "call_limit",
            f"the run has made more than {limits.calls:,} tool calls, including those of the tools that it calls",
            hint="call less often, or call a tool for many items with `start_batch`",
            tool=call.name,
        )
