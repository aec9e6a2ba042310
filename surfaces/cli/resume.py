"""Continues a run: for ``runs resume`` and ``approvals answer --resume``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.hints import command_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from albert_tools.engine.call.context import Log
    from albert_tools.engine.model.result import ToolResult
    from albert_tools.engine.runs.runs import RunView


async def resume(run: str, options: argparse.Namespace, console: Console) -> int:
    """Continue a run, given by its id or its first digits, and print its result. Returns the exit code."""
    from albert_tools.surfaces.cli.run import attended_service, print_result, run_attended
    from albert_tools.surfaces.text.exit_codes import INTERRUPTED

    found = await run_of(run, options)
    run, began_in = found.id, str(found.header["workspace"])
    done: list[Any] = [step for step in found.steps if step["state"] in ("ended", "failed")]
    async with attended_service(options, console, workspace=began_in) as service:

        def again(log: Log | None, watch: Callable[[str], None] | None) -> Awaitable[ToolResult]:
            return service.resume(run, log, session=token())

        result, interrupted = await run_attended(service, again, found.tool, console)
    if done:
        calls = "1 call was" if len(done) == 1 else f"{len(done)} calls were"
        console.note(f"{calls} done before; `{command_line(options.home, 'runs', 'show', run)}` lists all")
    code = print_result(result, options, console, sum(len(step["effects"]) for step in done))
    return INTERRUPTED if interrupted else code


async def run_of(run: str, options: argparse.Namespace) -> RunView:
    """The run, as it is before it is continued."""
    async with open_service(options) as service:
        return service.runs.show(run)
