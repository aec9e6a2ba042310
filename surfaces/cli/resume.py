"""Continues a run: for ``runs resume`` and ``approvals answer --resume``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from albert_tools.engine.call.context import Log
    from albert_tools.engine.model.result import ToolResult


async def resume(run: str, options: argparse.Namespace, console: Console) -> int:
    """Continue a run, given by its id or its first digits, and print its result. Returns the exit code."""
    from albert_tools.surfaces.cli.run import attended_service, print_result, run_attended
    from albert_tools.surfaces.text.exit_codes import INTERRUPTED

    run, tool, began_in = await workspace_of(run, options)
    async with attended_service(options, console, workspace=began_in) as service:

        def again(log: Log | None, watch: Callable[[str], None] | None) -> Awaitable[ToolResult]:
            return service.resume(run, log, session=token())

        result, interrupted = await run_attended(service, again, tool, console)
    code = print_result(result, options, console)
    return INTERRUPTED if interrupted else code


async def workspace_of(run: str, options: argparse.Namespace) -> tuple[str, str, str]:
    """The run's complete id, its tool and its workspace."""
    async with open_service(options) as service:
        found = service.runs.show(run)
    return found.id, found.tool, str(found.header["workspace"])
