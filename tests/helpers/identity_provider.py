"""An identity provider on this machine: OpenID discovery, keys, and the authorization server of MCP's SDK. It signs in one person.

`sign` makes any token, also false ones.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from mcp.client.auth import OAuthClientProvider
from mcp.server.auth.provider import (
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

#: Where the SDK's client gets the answer of the provider.
CALLBACK = "http://127.0.0.1:1/callback"
OPENID, OAUTH = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def public_jwk(key: Any, name: str, algorithm: str) -> dict[str, Any]:
    """The public part of a key, as a JSON Web Key."""
    made: Any = jwt.get_algorithm_by_name(algorithm)
    return {**json.loads(made.to_jwk(key.public_key())), "kid": name, "use": "sig", "alg": algorithm}


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, Any]):
    """The provider. `person` has the claims of the person who signs in, and `paths` the paths of the requests."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.keys: dict[str, tuple[Any, str]] = {
            "one": (rsa_key(), "RS256"),
            "curve": (ec.generate_private_key(ec.SECP256R1()), "ES256"),
            "edwards": (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        }
        self.person: dict[str, Any] = {"sub": "ada", "groups": ["engineering", "all"]}
        #: Seconds that a token is valid.
        self.seconds = 300
        self.paths: list[str] = []
        #: Answers that replace those at these paths.
        self.answers: dict[str, Response] = {}
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._refresh: dict[str, RefreshToken] = {}

    def sign(self, resource: str, key: str = "one", header: dict[str, Any] | None = None, **claims: Any) -> str:
        """An access token of the person. A claim that is None is left out."""
        private, algorithm = self.keys[key]
        now = int(time.time())
        all_claims = {
            "iss": self.issuer,
            "aud": resource,
            "iat": now,
            "exp": now + self.seconds,
            "jti": secrets.token_hex(8),
            "client_id": "the client",
            "scope": "albert",
            **self.person,
            **claims,
        }
        return jwt.encode(
            {name: value for name, value in all_claims.items() if value is not None},
            private,
            algorithm,
            {"typ": "at+jwt", "kid": key, **(header or {})},
        )

    def jwks(self) -> dict[str, Any]:
        return {"keys": [public_jwk(key, name, algorithm) for name, (key, algorithm) in self.keys.items()]}

    def document(self) -> dict[str, Any]:
        """What the provider says about itself."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["albert"],
            "authorization_response_iss_parameter_supported": True,
        }

    def application(self) -> Any:
        async def says(request: Request) -> Response:
            path = request.url.path
            told = self.jwks() if path == "/jwks" else self.document()
            return self.answers.get(path.removesuffix("/realms/team")) or JSONResponse(told)

        options = ClientRegistrationOptions(enabled=True, valid_scopes=["albert"])
        routes = create_auth_routes(self, AnyHttpUrl(self.issuer), client_registration_options=options)
        paths = (OPENID, OAUTH, "/jwks", OAUTH + "/realms/team")
        app = Starlette(routes=[*(Route(path, says) for path in paths), *routes])

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.paths.append(scope["path"])
            await app(scope, receive, send)

        return counted

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(16),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state, iss=self.issuer)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._tokens(authorization_code.resource, authorization_code.scopes)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self._refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self._refresh[refresh_token.token]
        return self._tokens(refresh_token.resource, refresh_token.scopes)

    async def load_access_token(self, token: str) -> Any:
        return None

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise TokenError("unsupported_grant_type")

    async def revoke_token(self, token: Any) -> None:
        """Tokens are valid until they expire."""

    def _tokens(self, resource: str | None, scopes: list[str]) -> OAuthToken:
        refresh = RefreshToken(token=secrets.token_hex(16), client_id="", scopes=scopes, resource=resource)
        self._refresh[refresh.token] = refresh
        token = self.sign(resource or "", scope=" ".join(scopes))
        return OAuthToken(
            access_token=token, expires_in=self.seconds, scope=" ".join(scopes), refresh_token=refresh.token
        )


@contextmanager
def identity_provider() -> Iterator[Provider]:
    """A provider that is served."""
    listening = socket.create_server(("127.0.0.1", 0))
    provider = Provider(f"http://127.0.0.1:{listening.getsockname()[1]}")
    server = uvicorn.Server(uvicorn.Config(provider.application(), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


class Storage:
    """What a client remembers."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def signing_in(url: str, storage: Storage) -> OAuthClientProvider:
    """What the SDK's client does about a 401: it asks the server and its provider, and opens a browser, which is a request here."""
    answered: list[AuthorizationCodeResult] = []

    async def browser(address: str) -> None:
        async with httpx2.AsyncClient(timeout=30, verify=False) as http:
            response = await http.get(address)
            while not response.headers.get("location", "").startswith(CALLBACK):
                if response.is_redirect:
                    response = await http.get(urljoin(address, response.headers["location"]))
                else:
                    # A form that asks for a name or a consent.
                    form = re.search(
                        r'<form[^>]* action="([^"]+)".*?name="prompt" value="(\w+)"', response.text, re.DOTALL
                    )
                    assert form, response.text
                    sent = {"prompt": form[2], "login": "ada", "password": "secret"}
                    response = await http.post(urljoin(address, form[1]), data=sent)
        answer = {name: value for name, (value,) in parse_qs(urlsplit(response.headers["location"]).query).items()}
        answered.append(AuthorizationCodeResult.model_validate(answer))

    async def callback() -> AuthorizationCodeResult:
        return answered.pop()

    metadata = OAuthClientMetadata(client_name="a client", redirect_uris=[AnyUrl(CALLBACK)])
    return OAuthClientProvider(url, metadata, storage, browser, callback)
