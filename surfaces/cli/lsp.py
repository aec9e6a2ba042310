"""``albert lsp``: serves an editor by the Language Server Protocol, over stdin and stdout (`surfaces.lsp`)."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from importlib.util import find_spec

from albert_tools.engine.model.messages import install_command
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import token
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.usage_error import Usage


def lsp(options: argparse.Namespace, console: Console) -> int:
    """Serve until the editor leaves."""
    if find_spec("pygls") is None:
        raise Usage("`albert lsp` needs the package pygls", install_command("lsp"))
    if sys.stdin is None or sys.stdin.isatty():
        raise Usage("an editor starts this command and writes to its stdin", "docs/editors.md shows how")
    # What the library logs about malformed messages has tracebacks.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    asyncio.run(_serve(options))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    from albert_tools.surfaces.lsp.server import serve_stdio

    async with open_service(options) as service:
        await serve_stdio(service, token())
