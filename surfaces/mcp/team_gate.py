"""Lets people in who have signed in at their team's identity provider, as the owner's rules say (`sign_in`).

This makes the server a resource server of OAuth: it describes itself (RFC 9728), and its refusals say where to sign in (RFC 6750).
A valid token of the provider is replaced by a token of the person's session. So all that follows knows only sessions.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Scope

from albert_tools.engine.authority.sessions import TOKEN_PREFIX
from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService

if TYPE_CHECKING:
    from albert_tools.engine.policy.sign_in import SignIn
    from albert_tools.surfaces.mcp.access_tokens import IdentityProvider

_DESCRIPTION = "/.well-known/oauth-protected-resource"
#: Seconds between two looks at the rules, to end sessions that they don't allow any more.
POLL_SECONDS = 0.5
_REMEDY = (
    "send the token of an open session of this workspace as Authorization: Bearer TOKEN; `albert session new` makes one"
)


class TeamGate:
    """Admits the people who may sign in to a service."""

    def __init__(self, service: ToolService) -> None:
        self._service = service
        self._provider: IdentityProvider | None = None

    @property
    def rules(self) -> SignIn | None:
        """The rules about people who sign in; None if nobody may."""
        governance = self._service.governance
        return None if isinstance(governance, Failure) else governance.sign_in

    async def admit(self, scope: Scope) -> ASGIApp | None:
        """Replace the provider's token in a request by that of a session. Returns the answer to a request that goes no further."""
        rules = self.rules
        if rules is None or scope["type"] != "http":
            return None
        if scope["path"].startswith(_DESCRIPTION):
            return JSONResponse(_description(rules))
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token or token.startswith(TOKEN_PREFIX):
            return None
        # Few servers need this, so they alone load it.
        from albert_tools.surfaces.mcp.access_tokens import NoKeys, RefusedToken

        try:
            claims = await self._provider_of(rules).claims(token)
            session = await asyncio.to_thread(self._service.sign_in, rules, claims)
        except RefusedToken as why:
            return refusal(rules, str(why))
        except NoKeys as why:
            return JSONResponse({"error": str(why)}, HTTPStatus.SERVICE_UNAVAILABLE)
        except Failure as failure:
            if failure.code != "permission_denied":
                return JSONResponse({"error": failure.message}, HTTPStatus.SERVICE_UNAVAILABLE)
            # More scopes can be asked for. Another lease can't.
            error = "insufficient_scope" if failure.rule == "sign_in.scopes" else "access_denied"
            return refusal(rules, failure.message, error, HTTPStatus.FORBIDDEN)
        others = [header for header in scope["headers"] if header[0] != b"authorization"]
        scope["headers"] = [*others, (b"authorization", f"Bearer {session}".encode())]
        return None

    def _provider_of(self, rules: SignIn) -> IdentityProvider:
        from albert_tools.surfaces.mcp.access_tokens import IdentityProvider

        known = self._provider
        if known is None or (known.issuer, known.resource) != (rules.issuer, rules.resource):
            known = self._provider = IdentityProvider(rules.issuer, rules.resource)
        return known

    async def watch(self) -> None:
        """End the sessions of people whose lease the rules don't have any more, until cancelled."""
        known: object = self
        while True:
            # While the rules can't be read, those before them are in force.
            with suppress(Failure):
                if (now := self.rules) != known:
                    await asyncio.to_thread(self._service.withdraw_sessions)
                    known = now
            await asyncio.sleep(POLL_SECONDS)


def refusal(
    rules: SignIn | None, why: str = _REMEDY, error: str = "invalid_token", status: int = HTTPStatus.UNAUTHORIZED
) -> JSONResponse:
    """The answer to a request that is refused. It says where to sign in, if people may."""
    facts = {"error": error, "error_description": why}
    if rules is not None:
        facts["resource_metadata"] = _description_url(rules)
        if rules.scopes:
            facts["scope"] = " ".join(rules.scopes)
    challenge = ", ".join(f'{name}="{value}"' for name, value in facts.items())
    body = {"error": error, "error_description": why}
    return JSONResponse(body, status, {"WWW-Authenticate": f"Bearer {challenge}"})


def _description_url(rules: SignIn) -> str:
    """Where the description of a resource is: before its path, as RFC 9728 says."""
    parts = urlsplit(rules.resource)
    return f"{parts.scheme}://{parts.netloc}{_DESCRIPTION}{parts.path.rstrip('/')}"


def _description(rules: SignIn) -> dict[str, object]:
    """The protected resource metadata."""
    return {
        "resource": rules.resource,
        "authorization_servers": [rules.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Albert Tools",
        **({"scopes_supported": list(rules.scopes)} if rules.scopes else {}),
    }
