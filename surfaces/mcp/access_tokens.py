"""Checks access tokens that an identity provider has signed: JSON Web Tokens, as RFC 9068 describes them.

The provider says by OpenID discovery (or RFC 8414) where its keys are. Its answers count for an hour. A token that names a key that
isn't among them makes this ask again, at most every half minute, so strangers can't make it ask often. A token says which key to
look up, and nothing else about keys: an address or a key in it is ignored. PyJWT checks the signatures.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from albert_tools.engine.policy.sign_in import is_protected

_LOG = logging.getLogger("albert.mcp")
#: With these, nobody who can check a signature can make one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
#: The types of an access token. Providers that don't follow RFC 9068 write JWT, or nothing.
_TYPES = ("at+jwt", "application/at+jwt", "jwt")
#: The most characters of a token and of a subject, and the most bytes of an answer of the provider.
MAX_TOKEN, MAX_SUBJECT, MAX_ANSWER = 16 * 1024, 255, 256 * 1024
#: Seconds by which the clocks of the provider and of this machine may differ.
LEEWAY_SECONDS = 10
#: Seconds for which keys count, between two questions to the provider, and that it has to answer.
KEYS_SECONDS, PAUSE_SECONDS, ANSWER_SECONDS = 3600, 30, 10
#: The messages about tokens that are not valid.
_WHY: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: "the token has expired",
    jwt.ImmatureSignatureError: "the token is not valid yet",
    jwt.InvalidAudienceError: "the token is for another resource",
    jwt.InvalidIssuerError: "the token is from another issuer",
    jwt.InvalidAlgorithmError: "the token is signed by an algorithm that is not allowed",
    jwt.InvalidSignatureError: "the signature of the token is wrong",
}


class RefusedToken(Exception):
    """The token is not valid. The text says why."""


class NoKeys(Exception):
    """The keys of the provider can't be had, so no token can be checked."""


class IdentityProvider:
    """Checks the tokens of one provider.

    Args:
        issuer: The URL of the provider.
        resource: The URL for which tokens must be issued.
    """

    def __init__(self, issuer: str, resource: str) -> None:
        self.issuer = issuer
        self.resource = resource
        self._keys: dict[str, jwt.PyJWK] = {}
        self._keys_until = self._next_question = 0.0
        self._asking = asyncio.Lock()

    async def claims(self, token: str) -> dict[str, Any]:
        """The claims of a valid token. `exp` is the second from which on it is refused here, and `sub` has at most `MAX_SUBJECT`
        characters.

        Raises:
            RefusedToken: The token is not valid.
            NoKeys: No token can be checked.
        """
        if len(token) > MAX_TOKEN:
            raise RefusedToken("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
            if str(header.get("typ", "jwt")).lower() not in _TYPES:
                raise RefusedToken("the token is no access token")
            claims = jwt.decode(
                token,
                await self._key(header.get("kid")),
                ALGORITHMS,
                {"require": ["exp", "iss", "aud", "sub"], "enforce_minimum_key_length": True},
                audience=self.resource,
                issuer=self.issuer,
                leeway=LEEWAY_SECONDS,
            )
        except jwt.PyJWTError as error:
            raise RefusedToken(_WHY.get(type(error), "the token is not valid")) from error
        subject = claims["sub"]
        if not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
            raise RefusedToken("the token has no usable subject")
        if "cnf" in claims:
            # Its bearer may not be the one to whom it was given (RFC 7800), and this does not check that.
            raise RefusedToken("the token is bound to a key of its client")
        return {**claims, "exp": int(claims["exp"]) + LEEWAY_SECONDS}

    async def _key(self, name: object) -> jwt.PyJWK:
        """The key with this name."""
        if not isinstance(name, str):
            raise RefusedToken("the token names no key")
        if (known := self._present().get(name)) is not None:
            return known
        async with self._asking:
            if name not in self._present() and time.monotonic() >= self._next_question:
                self._next_question = time.monotonic() + PAUSE_SECONDS
                await self._ask()
        present = self._present()
        if not present:
            raise NoKeys("the identity provider's keys can't be read")
        if name not in present:
            raise RefusedToken("the identity provider has no such key")
        return present[name]

    def _present(self) -> dict[str, jwt.PyJWK]:
        """The keys that count."""
        return self._keys if time.monotonic() < self._keys_until else {}

    async def _ask(self) -> None:
        """Read the keys. After a failure, those that were read before count as long as they would have."""
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                httpx.AsyncClient(headers={"accept-encoding": "identity"}) as http,
            ):
                document = await self._metadata(http)
                address = document.get("jwks_uri")
                if not isinstance(address, str) or not is_protected(address):
                    raise ValueError("its jwks_uri is no https:// address")
                answer = await _get(http, address)
                if answer is None:
                    raise ValueError(f"there is nothing at {address}")
                self._keys = _keys_of(answer)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            _LOG.warning("the keys of the identity provider %s can't be read: %.300r", self.issuer, why)
        else:
            self._keys_until = time.monotonic() + KEYS_SECONDS

    async def _metadata(self, http: httpx.AsyncClient) -> dict[str, Any]:
        """What the provider says about itself, in the document of OpenID or in that of RFC 8414."""
        parts = urlsplit(self.issuer)
        path = parts.path.rstrip("/")
        for address in (
            f"{self.issuer.rstrip('/')}/.well-known/openid-configuration",
            f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{path}",
        ):
            document = await _get(http, address)
            if document is None:
                continue
            if document.get("issuer") != self.issuer:
                raise ValueError(f"{address} is about another issuer")
            return document
        raise ValueError("it has no document about itself")


async def _get(http: httpx.AsyncClient, address: str) -> dict[str, Any] | None:
    """The JSON object at an address; None if there is nothing. Redirects are not followed.

    Raises:
        httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError: It can't be read.
    """
    data = b""
    async with http.stream("GET", address) as response:
        if response.status_code in (404, 405, 410):
            return None
        if response.status_code != 200:
            raise ValueError(f"{address} answered with {response.status_code}")
        async for part in response.aiter_raw():
            data += part
            if len(data) > MAX_ANSWER:
                raise ValueError(f"{address} answered with more than {MAX_ANSWER:,} bytes")
    answer = json.loads(data)
    if not isinstance(answer, dict):
        raise ValueError(f"{address} answered with no object")
    return answer


def _keys_of(answer: dict[str, Any]) -> dict[str, jwt.PyJWK]:
    """The usable keys of a JSON Web Key Set, by their names."""
    usable_keys: dict[str, jwt.PyJWK] = {}
    listed = answer.get("keys")
    for each in listed if isinstance(listed, list) else ():
        if not isinstance(each, dict) or not isinstance(each.get("kid"), str) or each.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(each)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
            continue
        if key.algorithm_name in ALGORITHMS:
            usable_keys.setdefault(each["kid"], key)
    return usable_keys
