"""People sign in at the identity provider of their team, with the SDK's real client, and get sessions by the owner's rules."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from albert_tools.store.postgres_files import FRESH_SECONDS
from tests.helpers.identity_provider import Provider, Storage, identity_provider, public_jwk, rsa_key, signing_in
from tests.helpers.postgres import server as postgres
from tests.surfaces.conftest import Albert
from tests.surfaces.mcp.conftest import PATIENCE, Place, said, until
from tests.surfaces.mcp.test_hostile_clients import NEW, half_sent

SIGN_IN = """
allow: [read_file, write_file, bash]
tools:
  bash: {{ordinary_commands: ["sleep *", "seq *", "test *"]}}
sign_in:
  resource: {resource}
  issuer: {issuer}
  scopes: [albert]
  leases:
    - {{name: engineers, claims: {{groups: [engineering]}}, tools: [read_file, run_source, bash, read_result, list_runs], hours: 8}}
    - {{name: writers, claims: {{groups: [docs], team: [red, blue]}}, tools: [write_file], budget: {{calls: 2}}}}
"""


class Team(Place):
    """A place whose clients over HTTP are people of a team."""

    provider: Provider

    def rules(self, text: str = SIGN_IN) -> None:
        """Put other rules in force."""
        rules = text.format(resource=self.url, issuer=self.provider.issuer)
        self.albert.write("rules.yaml", rules)
        done = self.albert("policy", "import", "rules.yaml")
        assert done.code == 0, done.err
        # In a database, they are in force that much later.
        time.sleep(FRESH_SECONDS)

    def sign(self, **claims: Any) -> str:
        return self.provider.sign(self.url, **claims)

    async def ask(self, token: str | None, **headers: str) -> httpx2.Response:
        """Ask for the list of tools."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": NEW}}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        headers |= {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
        headers |= {"mcp-method": "tools/list"}
        async with httpx2.AsyncClient(timeout=PATIENCE, verify=False) as http:
            return await http.post(self.url, json=message, headers=headers)

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions of people, newest first."""
        found = self.albert("session", "list", "--all", "--json").document()["sessions"]
        return [session for session in found if "person" in session]

    @asynccontextmanager
    async def person(self, storage: Storage | None = None, mode: Any = "auto") -> AsyncIterator[Client]:
        """A client that signs in."""
        auth = signing_in(self.url, storage or Storage())
        async with (
            httpx2.AsyncClient(auth=auth, timeout=PATIENCE, verify=False) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, cache=None) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with identity_provider() as provider:
        yield provider


def team_at(folder: Path, provider: Provider, home: str | None = None) -> Team:
    """A served place with the rules."""
    albert = Albert(folder)
    albert.environ |= {"HOME": str(albert.home)}
    if home is not None:
        albert.environ["ALBERT_HOME"] = home
    albert.write("notes.md", "hello")
    team = Team(albert)
    team.provider = provider
    team.serve()
    team.rules()
    return team


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Team]:
    """A place whose rules no test changes."""
    team = team_at(tmp_path_factory.mktemp("team"), provider)
    yield team
    team.stop()


@pytest.fixture
def team(tmp_path: Path, provider: Provider) -> Iterator[Team]:
    """A place of the test's own."""
    team = team_at(tmp_path, provider)
    yield team
    team.stop()


@pytest.fixture(autouse=True)
def _ada(provider: Provider) -> None:
    provider.person = {"sub": "ada", "groups": ["engineering", "all"]}


@pytest.mark.parametrize("home", ["folder", "database"])
async def test_a_person_signs_in_and_calls_a_tool(tmp_path: Path, provider: Provider, home: str):
    team = team_at(tmp_path, provider, postgres().url() if home == "database" else None)
    async with team.person() as client:
        assert (await client.call_tool("read_file", {"path": "notes.md"})).structured_content == {"result": "hello"}
        denied = await client.call_tool("write_file", {"path": "a", "content": "b"})
        assert denied.meta["albert/error"]["code"] == "permission_denied"
    (session,) = team.sessions()
    assert session["client"] == f"ada of {provider.issuer}"
    assert (session["person"]["issuer"], session["person"]["subject"]) == (provider.issuer, "ada")
    assert session["person"]["lease"] == "engineers"
    assert session["tools"] == ["bash", "list_runs", "read_file", "read_result", "run_source"]
    entries = team.albert("ledger", "query", "--json").document()["entries"]
    (opened,) = [entry for entry in entries if entry["kind"] == "session"]
    assert opened["person"] == session["person"]
    (call,) = [entry for entry in entries if entry["kind"] == "call"]
    assert call["session"] == opened["session"]
    assert team.albert("ledger", "verify").code == 0
    team.stop()


async def test_the_session_of_an_older_client_outlives_its_token(shared: Team):
    storage = Storage()
    async with shared.person(storage, "legacy") as client:
        await client.list_tools()
        before = shared.sessions()[0]
        assert storage.tokens is not None
        first = storage.tokens.access_token
        # The provider's next token is valid for longer.
        shared.provider.seconds = 1000
        storage.tokens.access_token = "e30.e30.e30"
        assert (await client.call_tool("read_file", {"path": "notes.md"})).structured_content == {"result": "hello"}
        shared.provider.seconds = 300
        assert storage.tokens.access_token != first
    after = shared.sessions()[0]
    assert (after["session"], after["created"]) == (before["session"], before["created"])
    assert after["expires"] > before["expires"]
    assert "the session has other times" in shared.albert("ledger", "tail", "-n", "20").out


async def test_the_server_says_where_to_sign_in_and_how_else_to_get_a_token(shared: Team):
    for token in (None, "alb_" + "0" * 64, "e30.e30.e30"):
        response = await shared.ask(token)
        assert response.status_code == 401
        challenge = response.headers["www-authenticate"]
        assert challenge.startswith('Bearer error="invalid_token", error_description="')
        found = re.search(r'resource_metadata="(\S+)", scope="albert"$', challenge)
        assert found, challenge
        assert ("albert session new" in response.text) == (token is None or token.startswith("alb_"))
    async with httpx2.AsyncClient(verify=False) as http:
        description = (await http.get(found.group(1))).json()
    assert description == {
        "resource": shared.url,
        "authorization_servers": [shared.provider.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Albert Tools",
        "scopes_supported": ["albert"],
    }
    own = shared.session("--tools", "read_file")
    assert (await shared.ask(own)).status_code == 200


def unsigned(team: Team) -> str:
    """The token without a signature."""
    _, payload, _ = team.sign().split(".")
    header = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "at+jwt", "kid": "one"}).encode())
    return f"{header.decode().rstrip('=')}.{payload}."


def by_public_key(team: Team) -> str:
    """The token, signed with a key that everybody has, in place of a shared secret."""
    public = team.provider.keys["one"][0].public_key()
    secret = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = jwt.decode(team.sign(), options={"verify_signature": False})
    # PyJWT refuses to make such a token.
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256", "typ": "at+jwt", "kid": "one"}, claims)
    )
    made = jwt.get_algorithm_by_name("HS256").sign(f"{head}.{body}".encode(), secret)
    return f"{head}.{body}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def by_another_key(team: Team, **header: Any) -> str:
    """The token, signed with the attacker's key."""
    claims = jwt.decode(team.sign(), options={"verify_signature": False})
    return jwt.encode(claims, ATTACKERS, "RS256", {"typ": "at+jwt", "kid": "one", **header})


def without_key(team: Team) -> str:
    """The token, signed with the provider's key, which it does not name."""
    claims = jwt.decode(team.sign(), options={"verify_signature": False})
    return jwt.encode(claims, team.provider.keys["one"][0], "RS256")


def changed(team: Team) -> str:
    """A token whose claims were changed after it was signed."""
    head, body, signature = team.sign(groups=["all"]).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "==")) | {"groups": ["engineering"]}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"{head}.{body}.{signature}"


ATTACKERS = rsa_key()
NOW = int(time.time())
WRONG = "the signature of the token is wrong"
ALGORITHM = "the token is signed by an algorithm that is not allowed"
INVALID, UNKNOWN = "the token is not valid", "the identity provider has no such key"
REFUSED: dict[str, tuple[Callable[[Team], str], str]] = {
    "no signature": (unsigned, ALGORITHM),
    "the public key as a secret": (by_public_key, ALGORITHM),
    "another key": (by_another_key, WRONG),
    "a key in the token": (lambda team: by_another_key(team, jwk=public_jwk(ATTACKERS, "one", "RS256")), WRONG),
    "an address of keys": (lambda team: by_another_key(team, jku="http://127.0.0.1:1/jwks", x5u="http://a/"), WRONG),
    "a key by its address": (lambda team: by_another_key(team, kid="http://127.0.0.1:1/jwks"), UNKNOWN),
    "a key by its path": (lambda team: by_another_key(team, kid="../../../../dev/null"), UNKNOWN),
    "an empty key": (lambda team: by_another_key(team, kid=""), UNKNOWN),
    "no key": (without_key, "the token names no key"),
    "another key's algorithm": (lambda team: team.sign(key="one", header={"kid": "curve"}), ALGORITHM),
    "changed claims": (changed, WRONG),
    "another resource": (lambda team: team.provider.sign("https://other.example.org/mcp"), "the token is for another resource"),
    "a resource below": (lambda team: team.provider.sign(team.url + "/more"), "the token is for another resource"),
    "the client itself": (lambda team: team.sign(aud="the client"), "the token is for another resource"),
    "no resource": (lambda team: team.sign(aud=None), INVALID),
    "an empty list of resources": (lambda team: team.sign(aud=[]), INVALID),
    "another issuer": (lambda team: team.sign(iss=team.provider.issuer + "/"), "the token is from another issuer"),
    "expired": (lambda team: team.sign(exp=NOW - 60), "the token has expired"),
    "no end": (lambda team: team.sign(exp=None), INVALID),
    "an endless end": (lambda team: team.sign(exp=float("inf")), INVALID),
    "not yet": (lambda team: team.sign(nbf=NOW + 3600), "the token is not valid yet"),
    "nobody": (lambda team: team.sign(sub=None), INVALID),
    "an empty name": (lambda team: team.sign(sub=""), "the token has no usable subject"),
    "a name with lines": (lambda team: team.sign(sub="ada\nbob"), "the token has no usable subject"),
    "a number for a name": (lambda team: team.sign(sub=7), INVALID),
    "an ID token's type": (lambda team: team.sign(header={"typ": "id+jwt"}), "the token is no access token"),
    "a critical extension": (lambda team: team.sign(header={"crit": ["x"], "x": 1}), INVALID),
    "bound to a key": (lambda team: team.sign(cnf={"jkt": "x"}), "the token is bound to a key of its client"),
    "huge": (lambda team: team.sign(more="x" * 20_000), "the token is too long"),
    "nested": (lambda team: f"{base64.urlsafe_b64encode(b'[' * 6000).decode()}.e30.e30", INVALID),
    "not a token": (lambda team: "x", INVALID),
}  # fmt: skip


async def test_a_false_token_is_refused(shared: Team):
    count = len(shared.sessions())
    answers = {attempt: await shared.ask(make(shared)) for attempt, (make, _) in REFUSED.items()}
    found = {attempt: (each.status_code, each.json()["error_description"]) for attempt, each in answers.items()}
    assert found == {attempt: (401, why) for attempt, (_, why) in REFUSED.items()}
    assert len(shared.sessions()) == count


@pytest.mark.parametrize("key", ["one", "curve", "edwards"])
async def test_valid_tokens_are_accepted(shared: Team, key: str):
    for token in (
        shared.sign(key=key),
        shared.sign(key=key, aud=["https://other.example.org", shared.url], header={"typ": "JWT"}),
        shared.sign(key=key, scope=None, scp=["albert", "more"], nbf=NOW),
        shared.sign(key=key, exp=2**60),
    ):
        assert (await shared.ask(token)).status_code == 200


async def test_too_few_scopes_and_no_lease_are_told_apart(shared: Team):
    few = await shared.ask(shared.sign(scope="openid"))
    assert few.status_code == 403
    assert 'error="insufficient_scope"' in few.headers["www-authenticate"]
    assert 'scope="albert"' in few.headers["www-authenticate"]
    for groups in (None, [], ["engineering2"], "Engineering", [["engineering"]], {"engineering": True}, True):
        none = await shared.ask(shared.sign(groups=groups))
        assert (none.status_code, none.json()["error"]) == (403, "access_denied")
    # Each of the claims is needed.
    assert (await shared.ask(shared.sign(groups=["docs"], sub="eve"))).status_code == 403
    assert (await shared.ask(shared.sign(groups=["docs"], team="blue", sub="eve"))).status_code == 200


async def test_requests_that_are_never_complete_keep_no_person_out(shared: Team):
    with half_sent(shared.url, 600, ""):
        for _ in range(3):
            assert (await shared.ask(shared.sign())).status_code == 200


async def test_people_are_held_apart(shared: Team):
    source = 'def noise() -> str:\n    """Noise."""\n    return tools.bash(command="seq 100000")["stdout"]\n'
    async with shared.person() as ada:
        ran = await ada.call_tool("run_source", {"source": source})
        assert not ran.is_error, said(ran)
        runs = await ada.call_tool("list_runs", {})
        (handle,) = re.findall(r"b3:[0-9a-f]{64}", said(await ada.call_tool("bash", {"command": "seq 100000"})))[:1]
        assert not (await ada.call_tool("read_result", {"handle": handle})).is_error
        shared.provider.person = {"sub": "bob", "groups": ["engineering"]}
        async with shared.person() as bob:
            assert (await bob.call_tool("read_result", {"handle": handle})).is_error
            theirs = await bob.call_tool("list_runs", {})
            run = re.search(r"[0-9a-f]{16}", said(runs))
            assert run
            assert run.group() not in said(theirs)
    assert {"ada", "bob"} <= {session["person"]["subject"] for session in shared.sessions()}


async def test_a_person_has_one_session_and_budget_in_all_servers(team: Team):
    writer = {"sub": "eve", "groups": ["docs"], "team": "red"}
    another = Team(team.albert)
    another.provider = team.provider
    another.serve()
    write = {"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}
    for place in (team, another):
        headers = {"authorization": f"Bearer {team.sign(**writer)}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE, verify=False) as http,
            Client(streamable_http_client(place.url, http_client=http), cache=None) as client,
        ):
            assert not (await client.call_tool(write["name"], write["arguments"])).is_error
            last = client
            if place is another:
                spent = await last.call_tool(write["name"], write["arguments"])
                assert spent.meta["albert/error"]["code"] == "budget_exceeded"
    another.stop()
    assert [session["used"]["calls"] for session in team.sessions()] == [2]


async def test_a_person_whose_session_is_revoked_stays_out(team: Team):
    assert (await team.ask(team.sign())).status_code == 200
    (session,) = team.sessions()
    team.albert("session", "revoke", session["session"])
    for _ in range(2):
        refused = await team.ask(team.sign())
        assert (refused.status_code, refused.json()["error"]) == (403, "access_denied")
    assert "revoked" in refused.json()["error_description"]
    # Others are not affected.
    assert (await team.ask(team.sign(sub="bob"))).status_code == 200


async def test_changed_rules_end_the_sessions_that_they_do_not_allow(team: Team):
    source = """
def wait() -> str:
    \"\"\"Wait for the file.\"\"\"
    while True:
        try:
            tools.read_file(path="go.txt")
        except ToolError:
            tools.bash(command="sleep 0.05")
            continue
        return "went on"
"""
    async with team.person() as client:
        call = asyncio.create_task(client.call_tool("run_source", {"source": source}))
        await until(lambda: team.albert("runs", "--json").document()["runs"])
        team.rules(SIGN_IN.replace("[engineering]", "[operations]"))
        assert (await asyncio.wait_for(call, PATIENCE)).meta["albert/error"]["code"] == "permission_denied"
    assert [session["ended"] for session in team.sessions()] == [True]
    assert (await team.ask(team.sign())).status_code == 403
    # A lease that is allowed again is another session's.
    team.rules()
    assert (await team.ask(team.sign())).status_code == 200
    assert [session["ended"] for session in team.sessions()] == [False, True]
    team.rules("allow: [read_file]\n")
    refused = await team.ask(team.sign())
    assert refused.status_code == 401
    assert "resource_metadata" not in refused.headers["www-authenticate"]
    await until(lambda: all(session["ended"] for session in team.sessions()))


async def test_a_server_behind_a_proxy_knows_its_own_name(team: Team):
    team.stop()
    team.rules(SIGN_IN.replace("{resource}", "https://tools.example.org/mcp"))
    team.serve()
    token = team.provider.sign("https://tools.example.org/mcp")
    own = {"host": "tools.example.org", "origin": "https://tools.example.org"}
    assert (await team.ask(token, **own)).status_code == 200
    assert (await team.ask(token, host="evil.example.org")).status_code == 421
    assert (await team.ask(token, origin="https://evil.example.org")).status_code == 403
    challenge = (await team.ask(None, **own)).headers["www-authenticate"]
    assert 'metadata="https://tools.example.org/.well-known/oauth-protected-resource/mcp"' in challenge
