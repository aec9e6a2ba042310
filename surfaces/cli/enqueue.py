"""``albert run --queue``: records a run that a worker executes, and prints its id."""

from __future__ import annotations

import argparse
import asyncio
from functools import partial

from msgspec.structs import replace

from albert_tools.engine.call.context import Queued
from albert_tools.surfaces.cli.arguments import arguments_of
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import session_given
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.hints import command_line


def enqueue(options: argparse.Namespace, console: Console) -> int:
    """Queue the run."""
    return asyncio.run(_enqueue(options, console))


async def _enqueue(options: argparse.Namespace, console: Console) -> int:
    token, _ = session_given(options)
    async with open_service(options) as service:
        arguments = await arguments_of(service, options, token)
        queued = Queued(options.queue, options.priority)
        if options.repository is not None:
            from albert_tools.surfaces.worker.checkout import commit_of, leave_workspaces

            leave_workspaces(str(service.workspace.root))
            find_commit = partial(commit_of, options.repository, options.revision)
            queued = replace(queued, repository=options.repository, changes=options.changes, find_commit=find_commit)
        run = await service.enqueue(
            options.name, arguments, queued, version=options.version, session=token, reason=options.reason
        )
    if console.json:
        console.document({"ok": True, "run": run, "queue": options.queue})
    else:
        console.write(f"{run}\n")
        console.note(f"a worker executes it; `{command_line(options.home, 'runs', 'show', run)}` shows how far it is")
    return 0
