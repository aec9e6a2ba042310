"""The keys of an identity provider: where they are read, how often, and what happens if the provider does not answer well."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from albert_tools.surfaces.mcp import access_tokens
from albert_tools.surfaces.mcp.access_tokens import IdentityProvider, NoKeys, RefusedToken
from tests.helpers.identity_provider import OAUTH, OPENID, Provider, identity_provider, rsa_key
from tests.helpers.network import Authorities, answer, raw

RESOURCE = "https://tools.example.org/mcp"


@pytest.fixture(scope="module")
def served() -> Iterator[Provider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture
def provider(served: Provider) -> Iterator[Provider]:
    keys = dict(served.keys)
    served.paths.clear()
    yield served
    served.keys = keys
    served.answers.clear()


async def test_strangers_can_not_make_it_ask_often(provider: Provider):
    checks = IdentityProvider(provider.issuer, RESOURCE)
    token = provider.sign(RESOURCE)
    found = await asyncio.gather(*(checks.claims(token) for _ in range(20)))
    assert {each["sub"] for each in found} == {"ada"}
    false = [checks.claims(provider.sign(RESOURCE, header={"kid": f"key {n}"})) for n in range(20)]
    for each in await asyncio.gather(*false, return_exceptions=True):
        assert isinstance(each, RefusedToken)
    assert (await checks.claims(token))["sub"] == "ada"
    assert provider.paths == [OPENID, "/jwks"]


async def test_a_new_key_is_found_and_a_withdrawn_one_forgotten(provider: Provider, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(access_tokens, "PAUSE_SECONDS", 0)
    checks, old = IdentityProvider(provider.issuer, RESOURCE), provider.sign(RESOURCE)
    await checks.claims(old)
    del provider.keys["one"]
    provider.keys["two"] = (rsa_key(), "PS512")
    assert (await checks.claims(provider.sign(RESOURCE, "two")))["sub"] == "ada"
    with pytest.raises(RefusedToken):
        await checks.claims(old)
    assert provider.paths == [OPENID, "/jwks"] * 3


async def test_keys_do_not_count_longer_because_the_provider_is_down(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(access_tokens, "PAUSE_SECONDS", 0)
    checks, token = IdentityProvider(provider.issuer, RESOURCE), provider.sign(RESOURCE)
    await checks.claims(token)
    provider.answers["/jwks"] = Response(status_code=500)
    with pytest.raises(RefusedToken):
        await checks.claims(provider.sign(RESOURCE, header={"kid": "unknown"}))
    assert await checks.claims(token)
    checks._keys_until = 0
    with pytest.raises(NoKeys):
        await checks.claims(token)
    provider.answers.clear()
    assert await checks.claims(token)


async def test_a_provider_that_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(access_tokens, "ANSWER_SECONDS", 0.2)

    def drip(_: bytes, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while connection.send(b" "):
            pass

    def nothing(_: bytes, connection: socket.socket) -> None:
        connection.recv(1)

    for handler in (drip, nothing):
        with raw(handler) as server:
            checks = IdentityProvider(f"http://127.0.0.1:{server.port}", RESOURCE)
            made = Provider(checks.issuer).sign(RESOURCE)
            for each in await asyncio.gather(*(checks.claims(made) for _ in range(5)), return_exceptions=True):
                assert isinstance(each, NoKeys)
            assert server.connections <= 1


async def test_a_provider_must_prove_who_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "others").mkdir()
    trusted, others = Authorities(tmp_path), Authorities(tmp_path / "others")
    monkeypatch.setenv("SSL_CERT_FILE", trusted.file)

    def says(head: bytes, connection: socket.socket) -> None:
        path = head.split()[1].decode()
        told = keys.jwks() if path == "/jwks" else keys.document()
        connection.sendall(answer(json.dumps(told).encode()))

    for authority, name, valid in ((trusted, "localhost", True), (others, "localhost", False), (trusted, "x", False)):
        with raw(says, authority.server(name)) as server:
            keys = Provider(f"https://localhost:{server.port}")
            claims = IdentityProvider(keys.issuer, RESOURCE).claims(keys.sign(RESOURCE))
            if valid:
                assert await claims
            else:
                with pytest.raises(NoKeys):
                    await claims


NONSENSE: dict[str, tuple[str, Any]] = {
    "no JSON": ("/jwks", Response("<html>")),
    "no object": ("/jwks", JSONResponse([])),
    "keys that are none": ("/jwks", JSONResponse({"keys": [1, None, {}, {"kid": "one"}, {"kid": "one", "kty": "RSA"}]})),
    "keys that are no list": ("/jwks", JSONResponse({"keys": {"one": {}}})),
    "a shared secret": ("/jwks", JSONResponse({"keys": [{"kid": "one", "kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}]})),
    "nested": ("/jwks", Response("[" * 200_000)),
    "endless": ("/jwks", Response(" " * 300_000)),
    "elsewhere": ("/jwks", RedirectResponse("/jwks2")),
    "nothing": ("/jwks", Response(status_code=404)),
    "an error": (OPENID, Response(status_code=503)),
    "another issuer": (OPENID, JSONResponse({"issuer": "https://other.example.org", "jwks_uri": "https://a/"})),
    "no address": (OPENID, {"jwks_uri": None}),
    "an address without TLS": (OPENID, {"jwks_uri": "http://keys.example.org/jwks"}),
    "a file": (OPENID, {"jwks_uri": "file:///etc/passwd"}),
    "half an address": (OPENID, {"jwks_uri": "https://["}),
}  # fmt: skip


@pytest.mark.parametrize("case", NONSENSE)
async def test_nonsense_gives_no_keys(provider: Provider, case: str):
    path, answer = NONSENSE[case]
    if isinstance(answer, dict):
        answer = JSONResponse(provider.document() | answer)
    provider.answers[path] = answer
    with pytest.raises(NoKeys):
        await IdentityProvider(provider.issuer, RESOURCE).claims(provider.sign(RESOURCE))


async def test_short_keys_and_keys_for_encryption_check_nothing(provider: Provider):
    provider.keys["short"] = (rsa_key(1024), "RS256")
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        short = provider.sign(RESOURCE, "short")
    listed = provider.jwks()["keys"]
    listed[0]["use"] = "enc"
    provider.answers["/jwks"] = JSONResponse({"keys": listed})
    checks = IdentityProvider(provider.issuer, RESOURCE)
    for token in (short, provider.sign(RESOURCE)):
        with pytest.raises(RefusedToken):
            await checks.claims(token)
    assert await checks.claims(provider.sign(RESOURCE, "curve"))


async def test_a_provider_without_openid_describes_itself_by_oauth(provider: Provider):
    issuer = f"{provider.issuer}/realms/team"
    document = JSONResponse({"issuer": issuer, "jwks_uri": f"{provider.issuer}/jwks"})
    provider.answers |= {OPENID: Response(status_code=404), OAUTH: document}
    with pytest.raises(NoKeys):
        await IdentityProvider(provider.issuer, RESOURCE).claims(provider.sign(RESOURCE))
    checks = IdentityProvider(issuer, RESOURCE)
    provider.paths.clear()
    assert await checks.claims(provider.sign(RESOURCE, iss=issuer))
    assert provider.paths == [f"/realms/team{OPENID}", f"{OAUTH}/realms/team", "/jwks"]
