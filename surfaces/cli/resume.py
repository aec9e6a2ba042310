"""Continues a run: for ``runs resume`` and ``approvals answer --resume``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from albert_tools.surfaces.cli.console import Console
from albert_tools.surfaces.cli.session_tools import token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from albert_tools.engine.call.context import Log
    from albert_tools.engine.model.result import ToolResult
    from albert_tools.service import ToolService


async def resume(run: str, options: argparse.Namespace, console: Console) -> int:
    """Continue a run, given by its id or its first digits, and print its result. Returns the exit code."""
    from albert_tools.surfaces.cli.exit_codes import INTERRUPTED
    from albert_tools.surfaces.cli.run import open_service, print_result, run_attended

    run, tool, began_in = await workspace_of(run, options)
    async with open_service(options, console, workspace=began_in) as service:

        def again(log: Log | None, watch: Callable[[str], None] | None) -> Awaitable[ToolResult]:
            return service.resume(run, log, session=token())

        result, interrupted = await run_attended(service, again, tool, console)
    code = print_result(result, options, console)
    return INTERRUPTED if interrupted else code


async def workspace_of(run: str, options: argparse.Namespace) -> tuple[str, str, str]:
    """The run's complete id, its tool and its workspace."""
    async with open_service_at(options) as service:
        found = service.runs.show(run)
    return found.id, found.tool, str(found.header["workspace"])


def open_service_at(options: argparse.Namespace, workspace: Any = None) -> ToolService:
    """The service of the workspace that the options name; by default that at `workspace`."""
    from albert_tools.service import ToolService

    where = options.workspace if options.workspace is not None else workspace
    return ToolService.open(home=options.home, workspace=where)
