"""Continues a run: for ``runs resume`` and ``approvals answer --resume``."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.hints import command_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from albert_tools.engine.call.context import Log
    from albert_tools.engine.model.result import ToolResult
    from albert_tools.engine.runs.runs import RunView
    from albert_tools.service import ToolService


async def resume(run: str, options: argparse.Namespace, console: Console) -> int:
    """Continue a run, given by its id or its first digits, and print its result. Returns the exit code."""
    from albert_tools.surfaces.cli.run import attended_service, print_result, run_attended
    from albert_tools.surfaces.text.exit_codes import INTERRUPTED

    async with open_service(options) as service:
        view = run_of(service, run)
    name = run if view is None else view.tool
    done: list[Any] = [s for s in (() if view is None else view.steps) if s["state"] in ("ended", "failed")]
    async with attended_service(options, console, workspace=workspace_of(view)) as service:

        def again(log: Log | None, watch: Callable[[str], None] | None) -> Awaitable[ToolResult]:
            return service.resume(run, log, session=token())

        result, interrupted = await run_attended(service, again, name, console)
    if done:
        calls = "1 call was" if len(done) == 1 else f"{len(done)} calls were"
        console.note(
            f"{calls} done before; `{command_line(options.home, 'runs', 'show', result.run_id or run)}` lists all"
        )
    code = print_result(result, options, console, sum(len(step["effects"]) for step in done))
    return INTERRUPTED if interrupted else code


def run_of(service: ToolService, run: str) -> RunView | None:
    """The run, as it is before a request about it. None if it can't be found: the request itself says why, and only to a session
    that may know."""
    with suppress(Failure):
        return service.runs.show(run)
    return None


def workspace_of(run: RunView | None) -> str | None:
    """The workspace of a request about a run: the run's own one. A session has only one workspace, so it gets no other."""
    return None if run is None or token() is not None else str(run.header["workspace"])
