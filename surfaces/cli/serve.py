"""``albert serve``: serves the wire protocol (`surfaces.wire`) until it is interrupted."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

from albert_tools.engine.model.messages import install_command
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.person import demand_person
from albert_tools.surfaces.text.usage_error import Usage

#: The packages of the extra.
_EXTRA = ("google", "grpc", "grpc_health", "grpc_reflection", "protovalidate")


def serve(options: argparse.Namespace, console: Console) -> int:
    """Serve, and print the addresses."""
    demand_person("the wire protocol is served")
    return asyncio.run(_serve(options, console))


async def _serve(options: argparse.Namespace, console: Console) -> int:
    try:
        from albert_tools.surfaces.wire.server import serving
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise Usage("`albert serve` needs further packages", install_command("wire")) from missing
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    socket = None if options.socket is None else Path(options.socket)
    async with open_service(options) as service, serving(service, socket, options.port) as addresses:
        if console.json:
            console.document({"ok": True, "addresses": addresses})
        else:
            console.write("".join(f"{address}\n" for address in addresses))
            console.note(
                "Each request needs the token of a session: `albert session new` opens one. Ctrl-C stops the server."
            )
        console.flush()
        await stopped.wait()
    return 0
