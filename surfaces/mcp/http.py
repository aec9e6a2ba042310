"""The server over streamable HTTP, for any number of clients. The bearer token of a request is the token of its session.

`TeamGate` has replaced the token of a person who has signed in before a request gets here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService
from albert_tools.surfaces.http_server import LOOPBACK
from albert_tools.surfaces.mcp.request_limits import MAX_MESSAGE, RequestLimit
from albert_tools.surfaces.mcp.team_gate import TeamGate, refusal
from albert_tools.surfaces.text.console import one_line

_LOG = logging.getLogger("albert.mcp")
PATH = "/mcp"
#: Connections of all clients.
MAX_CONNECTIONS = 1024
#: Sessions of the older revisions of the protocol: of all clients, and of one.
MAX_OLDER_SESSIONS, MAX_OLDER_OF_CLIENT = 256, 32


class SessionTokens:
    """Accepts the tokens of the open sessions of this workspace."""

    def __init__(self, service: ToolService) -> None:
        self._service = service

    async def verify_token(self, token: str) -> AccessToken | None:
        """The session of a token; None if it has none."""
        try:
            session = self._service.session_of(token)
        except Failure as failure:
            # The SDK answers each refusal with the same text, so the log says why a token that was valid is refused.
            if failure.rule != "session.unknown":
                _LOG.warning("refused the token of a session (401): %s", one_line(failure.message))
            return None
        client = self._service.client_of(token) or session.id
        return AccessToken(token=token, client_id=client, subject=session.id, scopes=[])

    def client_of_token(self, token: str) -> str | None:
        """The client of a token, see `ToolService.client_of`."""
        return self._service.client_of(token)

    def is_active(self, session: str) -> bool:
        """Whether the session with this id is active."""
        return self._service.sessions.is_active(session)

    def client_of(self, scope: Scope) -> str | None:
        """The client of the token that a request has; None if it has none."""
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return self.client_of_token(token) if kind.lower() == "bearer" else None


def session_token() -> str:
    """The token of the request that is handled."""
    access_token = get_access_token()
    assert access_token is not None, "the SDK has admitted a request without a token"
    return access_token.token


def http_app(server: Server[Any], tokens: SessionTokens, host: str, gate: TeamGate) -> ASGIApp:
    """The application that serves clients which reach it by the address `host`, or by that of the rules for people who sign in. A
    request without a session's token is refused."""
    names = [host, *(("localhost",) if host in (LOOPBACK, "[::1]") else ())]
    resource = urlsplit(gate.rules.resource) if gate.rules is not None else None
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_MESSAGE,
        max_sessions=MAX_OLDER_SESSIONS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[*(f"{name}:*" for name in names), *([resource.netloc] if resource else ())],
            allowed_origins=[
                *(f"http://{name}:*" for name in names),
                *([f"{resource.scheme}://{resource.netloc}"] if resource else ()),
            ],
        ),
        # The SDK knows only tokens of sessions, which `TeamGate` gives to people. It asks for an issuer all the same.
        auth=AuthSettings(issuer_url=AnyHttpUrl(f"http://{host}"), resource_server_url=None),
        token_verifier=tokens,
    )
    _share_older_sessions(server.session_manager, tokens.is_active)
    return RequestLimit(_NamesTheRemedy(app, gate), tokens.client_of_token)


class _NamesTheRemedy:
    """An application whose 401 says where a token comes from. The SDK's says only that one is required."""

    def __init__(self, app: ASGIApp, gate: TeamGate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        refused = False

        async def sent(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] == HTTPStatus.UNAUTHORIZED:
                refused = True
                await refusal(self._gate.rules)(scope, receive, send)
            elif not refused:
                await send(message)

        await self._app(scope, receive, sent)


def _share_older_sessions(manager: StreamableHTTPSessionManager, is_active: Callable[[str], bool]) -> None:
    """Bound the older sessions of one client. The SDK bounds those of all clients together, and keeps one until it has been idle
    for half an hour, also if its token isn't valid any more. If there is no room, those whose session has ended are
    closed first."""
    admit, owners, transports = manager._admit_session, manager._session_owners, manager._server_instances

    def admit_share(requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        client = requestor["client_id"] if requestor else None
        mine = {each: owner for each, owner in owners.items() if owner["client_id"] == client}
        full = owners if len(owners) >= MAX_OLDER_SESSIONS else mine if len(mine) >= MAX_OLDER_OF_CLIENT else {}
        # Ask about these sessions only, not about all of the home: every client waits while this runs.
        subjects = {owner["subject"] for owner in full.values()}
        ended = {subject for subject in subjects if subject is None or not is_active(subject)}
        for each in [each for each, owner in full.items() if owner["subject"] in ended]:
            mine.pop(each, None)
            del owners[each]
            if (transport := transports.pop(each, None)) is not None and manager._task_group is not None:
                manager._task_group.start_soon(transport.terminate)
        return admit(requestor) if len(mine) < MAX_OLDER_OF_CLIENT else None

    setattr(manager, admit.__name__, admit_share)
