"""The server over streamable HTTP, for any number of clients. The bearer token of a request is the token of its session."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService
from albert_tools.surfaces.mcp.request_limits import MAX_MESSAGE
from albert_tools.surfaces.mcp.server import McpServer

LOOPBACK = "127.0.0.1"
PATH = "/mcp"
#: Connections of all clients, and sessions of clients that speak an older revision of the protocol.
MAX_CONNECTIONS, MAX_OLDER_SESSIONS = 1024, 256
#: Seconds that requests have to end when the server is stopped.
GRACE_SECONDS = 3


class SessionTokens:
    """Accepts the tokens of the open sessions of this workspace."""

    def __init__(self, service: ToolService) -> None:
        self._service = service

    async def verify_token(self, token: str) -> AccessToken | None:
        """The session of a token; None if it has none."""
        try:
            session = self._service.actions.session(token)
        except Failure:
            return None
        return AccessToken(token=token, client_id=session.id, subject=session.id, scopes=[])


def session_token() -> str:
    """The token of the request that is handled."""
    found = get_access_token()
    assert found is not None, "the SDK has admitted a request without a token"
    return found.token


async def serve_http(
    service: ToolService, host: str, port: int, *, elicit: bool, ready: Callable[[str], object]
) -> None:
    """Serve until the process is asked to stop.

    Args:
        service: Makes the calls.
        host: The address to listen on, as clients write it in their URL.
        port: The port; 0 for any free one.
        elicit: Whether the users of the clients may answer questions.
        ready: Called with the URL as soon as clients can connect.

    Raises:
        OSError: The server can't listen there.
    """
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    spelled = f"[{host}]" if ":" in host else host
    names = [spelled, *(("localhost",) if host in (LOOPBACK, "::1") else ())]
    server = McpServer(service, session_token, elicit=elicit)
    app = server.server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_MESSAGE,
        max_sessions=MAX_OLDER_SESSIONS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[f"{name}:*" for name in names], allowed_origins=[f"http://{name}:*" for name in names]
        ),
        # No authorization server exists: a token comes from `albert session new`. The SDK asks for an issuer all the same.
        auth=AuthSettings(issuer_url=AnyHttpUrl(f"http://{spelled}"), resource_server_url=None),
        token_verifier=SessionTokens(service),
    )
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    running = _Server(config, lambda: ready(f"http://{spelled}:{listening.getsockname()[1]}{PATH}"))
    await running.serve(sockets=[listening])


class _Server(uvicorn.Server):
    """Reports when it accepts connections."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        self._ready()
