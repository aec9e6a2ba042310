"""``albert mcp``: serves the tools to agents by the Model Context Protocol.

Over stdio the client starts this process, so the process has one session: the one of ALBERT_SESSION, or its own, which ends with
it. Over HTTP each request brings the token of its session.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from importlib.util import find_spec

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import install_command
from albert_tools.surfaces.cli.service_options import open_service
from albert_tools.surfaces.cli.session_tools import session_of_token, token
from albert_tools.surfaces.cli.sessions import check_session_options, open_session
from albert_tools.surfaces.text.console import Console
from albert_tools.surfaces.text.person import demand_person
from albert_tools.surfaces.text.usage_error import Usage

#: The lifetime of the process's own session, if none is given: clients run for weeks, and the session ends with its process.
PROCESS_SECONDS = 30 * 86400.0
#: Bytes of an output that a result shows whole: a model reads it.
OUTPUT_BYTES = 128 * 1024
MAX_PORT = 65535


def mcp(options: argparse.Namespace, console: Console) -> int:
    """Serve until the client leaves, or the process is asked to stop."""
    if find_spec("mcp") is None:
        raise Usage("`albert mcp` needs the package mcp", install_command("mcp"))
    if options.elicit:
        demand_person("the client's user is allowed to answer questions")
    check_session_options(options)
    if options.http is not None:
        _check_http(options)
        demand_person("a server for several sessions is started")
        # uvicorn ends its requests on this signal, and then sends it again.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        asyncio.run(_http(options, console))
        return 0
    if sys.stdin is None:
        raise Usage("stdin is closed", "a client starts this command and writes to its stdin")
    if sys.stdin.isatty():
        console.note("a client starts this command and writes to its stdin; docs/mcp.md shows how")
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_stdio(options, console))
    return 0


def _check_http(options: argparse.Namespace) -> None:
    port = options.http.rpartition(":")[2]
    if not port.isdecimal() or len(port) > 5 or int(port) > MAX_PORT:
        raise Usage(f"--http {options.http!r} is no port", "write --http 8765, or --http HOST:8765")
    if any(getattr(options, name) is not None for name in ("tools", "preset", "client", "seconds")):
        raise Usage(
            "over HTTP, the session is that of the client's token", "give these options to `albert session new`"
        )


async def _stdio(options: argparse.Namespace, console: Console) -> None:
    from albert_tools.surfaces.mcp.server import mcp_server
    from albert_tools.surfaces.mcp.stdio import serve_stdio

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with open_service(options, output_bytes=OUTPUT_BYTES) as service:
        # A host and a shell often have different environments, and so other homes.
        console.note(f"serving {service.workspace.root}; tools, approvals and record are in {service.home.local.shown}")
        given, own = token(), None
        if given is None:
            own, given = open_session(service, options, "an MCP client", PROCESS_SECONDS)
        else:
            session_of_token(service, given)
        session_token = given
        try:
            await serve_stdio(mcp_server(service, lambda: session_token, elicit=options.elicit, own=options.own))
        finally:
            if own is not None:
                service.sessions.end(own.id)


async def _http(options: argparse.Namespace, console: Console) -> None:
    from albert_tools.surfaces.http_server import LOOPBACK, listen, serve
    from albert_tools.surfaces.mcp.http import MAX_CONNECTIONS, PATH, SessionTokens, http_app, session_token
    from albert_tools.surfaces.mcp.server import mcp_server
    from albert_tools.surfaces.mcp.team_gate import TeamGate

    host, _, port = options.http.rpartition(":")
    host = host or LOOPBACK
    async with open_service(options, output_bytes=OUTPUT_BYTES) as service:
        tokens, gate = SessionTokens(service), TeamGate(service)
        server = mcp_server(service, session_token, elicit=options.elicit, own=options.own)
        app = http_app(server, tokens, host, gate)
        watching = asyncio.create_task(gate.watch())
        try:
            listening, bound = listen(host, int(port))
            url, home = f"http://{host}:{bound}{PATH}", service.home.local.shown
            note = f"serving {url}; `albert session new` makes the token of a client; the home is {home}"
            await serve(app, listening, MAX_CONNECTIONS, tokens.client_of, lambda: console.note(note), gate.admit)
        except OSError as error:
            raise Failure("io_error", f"can't listen on {options.http}: {error.strerror}") from error
        finally:
            watching.cancel()
