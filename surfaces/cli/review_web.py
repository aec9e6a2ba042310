"""``albert review --web``: serves the review as pages on this machine, until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from importlib.util import find_spec

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import install_command
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.person import person
from albert_tools.surfaces.text.usage_error import Usage

#: The packages of the extra.
_EXTRA = ("jinja2", "starlette", "uvicorn")
#: Connections of the browser.
MAX_CONNECTIONS = 64


def review_web(options: argparse.Namespace, console: Console) -> int:
    """Serve the pages, and print the link that opens them. A session must not call this."""
    if any(find_spec(name) is None for name in _EXTRA):
        raise Usage("`albert review --web` needs further packages", install_command("web"))
    # uvicorn ends its requests on this signal, and then sends it again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asyncio.run(_serve(options, console))
    return 0


async def _serve(options: argparse.Namespace, console: Console) -> None:
    from albert_tools.surfaces.http_server import LOOPBACK, listen, serve
    from albert_tools.surfaces.web.access import Access
    from albert_tools.surfaces.web.app import Pages

    async with open_service(options) as service:
        try:
            listening, port = listen(LOOPBACK, options.port)
        except OSError as error:
            raise Failure("io_error", f"can't listen on port {options.port}: {error.strerror}") from error
        access = Access(f"http://{LOOPBACK}:{port}")
        pages = Pages(service, access, f"{person()}, on the review page")

        def ready() -> None:
            console.write(f"{access.link}\n")
            console.note("Open the link in a browser. It works once. Ctrl-C stops the server.")
            console.flush()

        await serve(pages.application(), listening, MAX_CONNECTIONS, access.client_of, ready)
