"""The first stage: look up the tool."""

from __future__ import annotations

from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.call.errors import shown
from albert_tools.engine.model.failure import Failure


async def lookup(call: Call, run: Run) -> Call:
    """Find the primitive or the saved version that the call names.

    Raises:
        Failure: `unknown_tool`, `damaged`, `io_error`, `invalid_arguments`; `permission_denied` for a call that the
            checker has not seen in the program.
    """
    if not call.pinned:
        caller = call.callers[-1]
        raise Failure(
            "permission_denied", f"{caller} was not checked to call {shown(call.tool)}", rule="pins", tool=caller
        )
    if call.depth:
        return call._replace(target=run.lookup.look_up(call.tool, call.version))
    run.target = run.lookup.look_up(call.tool, call.version, run.unsaved)
    return call._replace(target=run.target)
