"""The web tools through the service: allowed, asked about, denied, timed out, cancelled, recorded, and called from programs."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from albert_tools import Question, ToolService
from tests.helpers.network import Raw, answer, raw

TOOLS = ["http_request", "fetch_url", "web_search"]
PAGE = (
    "<html><head><title>Otters</title></head><body><article><p>"
    + "The otter eats fish. " * 20
    + "</p></article></body></html>"
)


def serve(head: bytes, connection: socket.socket) -> None:
    """Answer with a page or with search results, or never answer."""
    path = head.split()[1]
    if b"stall" in path:
        stalled.set()
        connection.recv(1)
    elif b"/search" in path:
        found = {"results": [{"title": "Otters", "url": "https://example.org/", "content": "fish"}]}
        connection.sendall(answer(json.dumps(found).encode(), headers=["Content-Type: application/json"]))
    elif b"/echo" in path:
        connection.sendall(answer(head, headers=["Content-Type: text/plain"]))
    else:
        connection.sendall(answer(PAGE.encode(), headers=["Content-Type: text/html"]))


stalled = threading.Event()


@pytest.fixture
def server() -> Any:
    stalled.clear()
    with raw(serve) as server:
        yield server


def call_of(tool: str, server: Raw, path: str = "page") -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a call that reaches the server, and its settings."""
    url = f"http://127.0.0.1:{server.port}/{path}"
    if tool != "web_search":
        return {"url": url}, {}
    path = path if path != "page" else "search"
    return {"query": "otters"}, {"web_search": {"provider": "searxng", "url": f"http://127.0.0.1:{server.port}/{path}"}}


def opened(tmp_path: Path, rules: dict[str, Any], **more: Any) -> Any:
    (tmp_path / "work" / ".albert").mkdir(parents=True, exist_ok=True)
    return ToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", governance=rules, **more)


NAMED = {"categories": {"network": {"allowed_hosts": ["127.0.0.1"]}}}


@pytest.mark.parametrize("tool", TOOLS)
async def test_an_allowed_call_and_its_record(tmp_path: Path, server: Raw, tool: str) -> None:
    arguments, settings = call_of(tool, server)
    async with opened(tmp_path, {**NAMED, "primitives": settings}) as service:
        result = await service.invoke(tool, arguments)
        assert result.ok, result.error
        (effect,) = result.effects
        assert (effect.kind, effect.facts["status"], effect.facts["method"]) == ("network", 200, "GET")
        assert effect.facts["url"].startswith(f"http://127.0.0.1:{server.port}/")
        assert len(effect.facts["sha256"]) == 64
    written = "".join(p.read_text(errors="replace") for p in (tmp_path / "home").rglob("*") if p.is_file())
    assert effect.facts["sha256"] in written


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ({"deny": TOOLS}, "deny"),
        ({"categories": {"network": {"forbidden_hosts": ["127.0.0.1"]}}}, "categories.network.forbidden_hosts"),
        ({"categories": {"network": {"allowed_hosts": ["example.org"]}}}, "categories.network.allowed_hosts"),
        (
            {"categories": {"network": {"allowed_hosts": ["*"], "allowed_methods": ["POST"]}}},
            "categories.network.allowed_methods",
        ),
        ({"categories": {"network": {"forbidden_in_modes": ["NORMAL"]}}}, "categories.network.forbidden_in_modes"),
    ],
)
async def test_a_denied_call_names_its_rule(
    tmp_path: Path, server: Raw, tool: str, rules: dict[str, Any], rule: str
) -> None:
    arguments, settings = call_of(tool, server)
    async with opened(tmp_path, {**rules, "primitives": settings}) as service:
        result = await service.invoke(tool, arguments)
    assert (result.error.code, result.error.rule) == ("permission_denied", rule)
    assert result.effects == ()
    assert server.connections == 0


@pytest.mark.parametrize("tool", ["http_request", "fetch_url"])
async def test_a_new_host_is_asked_about_but_an_address_is_refused(tmp_path: Path, server: Raw, tool: str) -> None:
    asked: list[str] = []

    async def person(question: Question) -> bool:
        asked.append(question.decision.rule)
        return True

    async with opened(tmp_path, {}, ask=person) as service:
        # A call that would be refused after approval is not asked about.
        result = await service.invoke(tool, {"url": f"http://127.0.0.1:{server.port}/"})
        assert (result.error.rule, asked) == ("shipped.addresses", [])
        # Approval of a host name does not open its addresses.
        result = await service.invoke(tool, {"url": f"http://localhost:{server.port}/"})
        assert (result.error.rule, asked) == ("shipped.addresses", ["shipped.new_host_asks"])
    async with opened(tmp_path, {}, patience=None) as service:
        result = await service.invoke(tool, {"url": "https://example.org/"})
        assert (result.error.code, result.error.rule) == ("permission_denied", "shipped.new_host_asks")
    rules = {"tools": {tool: {"allowed_addresses": ["127.0.0.1"]}}}
    async with opened(tmp_path, rules, ask=person) as service:
        result = await service.invoke(tool, {"url": f"http://127.0.0.1:{server.port}/"})
        assert result.ok, result.error
    assert len(server.seen) == 1


@pytest.mark.parametrize("tool", ["http_request", "fetch_url"])
async def test_a_free_host_is_reached_unasked_and_others_are_asked_about(
    tmp_path: Path, server: Raw, tool: str
) -> None:
    asked: list[str] = []

    async def person(question: Question) -> bool:
        asked.append(question.decision.subject)
        return False

    rules = {"free_hosts": ["127.0.0.1"], "tools": {tool: {"allowed_addresses": ["127.0.0.1"]}}}
    async with opened(tmp_path, rules, ask=person) as service:
        result = await service.invoke(tool, {"url": f"http://127.0.0.1:{server.port}/"})
        assert (result.ok, asked) == (True, []), result.error
        result = await service.invoke(tool, {"url": f"http://localhost:{server.port}/"})
        assert (result.error.rule, asked) == ("shipped.new_host_asks", ["GET localhost"])
    assert len(server.seen) == 1


@pytest.mark.parametrize("tool", TOOLS)
async def test_it_times_out(tmp_path: Path, server: Raw, tool: str) -> None:
    arguments, settings = call_of(tool, server, "stall")
    rules = {"tools": {tool: {"timeout_seconds": 0.5, "allowed_hosts": ["127.0.0.1"]}}, "primitives": settings}
    async with opened(tmp_path, rules) as service:
        result = await service.invoke(tool, arguments)
    assert result.error.code == "timeout"
    assert [e.kind for e in result.effects] == ["network"]


@pytest.mark.parametrize("tool", TOOLS)
async def test_it_is_cancelled(tmp_path: Path, server: Raw, tool: str) -> None:
    arguments, settings = call_of(tool, server, "stall")
    async with opened(tmp_path, {**NAMED, "primitives": settings}) as service:
        call = asyncio.create_task(service.invoke(tool, arguments))
        assert await asyncio.to_thread(stalled.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    # The request was sent, so it is recorded.
    written = "".join(p.read_text(errors="replace") for p in (tmp_path / "home").rglob("*") if p.is_file())
    assert "the call was cancelled" in written
    assert '"network"' in written


SOURCES = {
    "http_request": 'return tools.http_request(url=where, headers={"x-a": "b"})["body"]',
    "fetch_url": 'return tools.fetch_url(url=where)["text"]',
    "web_search": 'return tools.web_search(query=where, count=3)[0]["snippet"]',
}


@pytest.mark.parametrize("tool", TOOLS)
async def test_from_a_program(tmp_path: Path, server: Raw, tool: str) -> None:
    arguments, settings = call_of(tool, server)
    source = f'''def ask(where: str) -> str:
    """Ask the web.

    Args:
        where: What to ask for.
    """
    {SOURCES[tool]}
'''
    async with opened(tmp_path, {**NAMED, "primitives": settings}) as service:
        await service.define(source)
        result = await service.invoke("ask", {"where": next(iter(arguments.values()))})
    assert result.ok, result.error
    assert "fish" in result.output
    assert [e.tool for e in result.effects] == [tool]


async def test_a_secret_is_in_no_record(tmp_path: Path, server: Raw, monkeypatch: Any) -> None:
    value = "a-value-that-nobody-sees"
    monkeypatch.setenv("ALBERT_SECRET_TOKEN", value)
    source = '''def ask(url: str) -> dict:
    """Ask with a secret.

    Args:
        url: Where.
    """
    answer = tools.http_request(url=url, headers={"Authorization": {"secret": "TOKEN", "prefix": "Bearer "}})
    print(answer["body"])
    return answer
'''
    notices: list[Any] = []

    class Watch:
        def started(self, notice: Any) -> None:
            notices.append(repr(notice))

        def ended(self, notice: Any) -> None:
            notices.append(repr(notice))

    async with opened(tmp_path, {**NAMED, "secrets": {"TOKEN": ["127.0.0.1"]}}, telemetry=Watch()) as service:
        await service.define(source)
        result = await service.invoke("ask", {"url": f"http://127.0.0.1:{server.port}/echo"})
        assert result.ok, result.error
    assert f"Authorization: Bearer {value}".encode() in server.seen[0]
    assert "[redacted]" in result.output["body"]
    everything = [repr(result), result.log, *notices]
    everything += [p.read_text(errors="replace") for p in (tmp_path / "home").rglob("*") if p.is_file()]
    assert not any(value in text for text in everything)
    assert any("TOKEN" in text for text in everything)


async def test_nobody_is_asked_about_a_secret_that_can_not_be_sent(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> bool:
        asked.append(question)
        return True

    async with opened(tmp_path, {"secrets": {"TOKEN": ["api.example.org"]}}, ask=ask) as service:
        headers = {"k": {"secret": "TOKEN"}}
        result = await service.invoke("http_request", {"url": "https://evil.example/", "headers": headers})
    assert (result.error.code, result.error.rule, asked) == ("permission_denied", "secrets.TOKEN", [])


async def test_a_project_cannot_bind_secrets(tmp_path: Path, server: Raw, monkeypatch: Any) -> None:
    monkeypatch.setenv("ALBERT_SECRET_TOKEN", "a-value-that-nobody-sees")
    (tmp_path / "work" / ".albert").mkdir(parents=True)
    (tmp_path / "work" / ".albert" / "governance.yaml").write_text("secrets: {TOKEN: [127.0.0.1]}\n")
    async with opened(tmp_path, NAMED) as service:
        headers = {"k": {"secret": "TOKEN"}}
        result = await service.invoke("http_request", {"url": f"http://127.0.0.1:{server.port}/", "headers": headers})
    assert (result.error.code, result.error.rule) == ("permission_denied", "secrets")
    assert server.connections == 0


async def test_invalid_arguments(tmp_path: Path) -> None:
    async with opened(tmp_path, NAMED) as service:
        for tool, arguments in (
            ("http_request", {"url": ""}),
            ("http_request", {"url": "http://127.0.0.1/" + "a" * 9000}),
            ("http_request", {"url": "http://127.0.0.1/", "method": "CONNECT"}),
            ("http_request", {"url": "http://127.0.0.1/", "follow": 11}),
            ("http_request", {"url": "http://127.0.0.1/", "headers": {"a": {"secrets": "B"}}}),
            ("http_request", {"url": "http://127.0.0.1/", "headers": {"a": 1}}),
            ("fetch_url", {"url": "http://127.0.0.1/", "limit": 1}),
            ("web_search", {"query": ""}),
            ("web_search", {"query": "a", "count": 51}),
        ):
            result = await service.invoke(tool, arguments)
            assert result.error.code == "invalid_arguments", arguments


async def test_network_bytes_are_charged_to_the_budget(tmp_path: Path, server: Raw) -> None:
    async with opened(tmp_path, NAMED) as service:
        result = await service.invoke(
            "http_request", {"url": f"http://127.0.0.1:{server.port}/", "method": "POST", "body": "12345"}
        )
    assert result.budget_consumed["network_bytes"] == len(PAGE) + 5


async def test_connections_are_reused_and_end_with_the_service(tmp_path: Path, server: Raw) -> None:
    def connected() -> int:
        found = psutil.Process().net_connections("tcp")
        return sum(1 for c in found if c.raddr and c.raddr.port == server.port and c.status == psutil.CONN_ESTABLISHED)

    async with opened(tmp_path, NAMED) as service:
        for _ in range(3):
            assert (await service.invoke("http_request", {"url": f"http://127.0.0.1:{server.port}/"})).ok
        assert (server.connections, connected()) == (1, 1)
    assert connected() == 0


async def test_new_rules_apply_to_open_connections(tmp_path: Path, server: Raw) -> None:
    rules = tmp_path / "governance.yaml"
    rules.write_text(json.dumps(NAMED))
    (tmp_path / "work" / ".albert").mkdir(parents=True)
    arguments = {"url": f"http://127.0.0.1:{server.port}/"}
    async with ToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", governance=rules) as service:
        assert (await service.invoke("http_request", arguments)).ok
        rules.write_text(json.dumps({"categories": {"network": {"allowed_hosts": ["*"]}}}))
        result = await service.invoke("http_request", arguments)
        assert (result.error.code, result.error.rule) == ("permission_denied", "shipped.addresses")
    assert len(server.seen) == 1


async def test_a_redirect_on_an_approved_host_is_not_asked_again(tmp_path: Path) -> None:
    def moved(head: bytes, connection: socket.socket) -> None:
        first = head.split()[1] == b"/"
        connection.sendall(answer(b"" if first else b"here", "302 Found" if first else "200 OK", ["Location: /there"]))

    asked = []

    async def person(question: Question) -> bool:
        asked.append(question.decision.subject)
        return True

    rules = {"categories": {"network": {"allowed_addresses": ["127.0.0.1"]}}}
    with raw(moved) as server:
        async with opened(tmp_path, rules, ask=person) as service:
            arguments = {"url": f"http://127.0.0.1:{server.port}/", "follow": 2}
            result = await service.invoke("http_request", arguments)
    assert result.ok, result.error
    assert result.output["body"] == "here"
    assert asked == ["GET 127.0.0.1"]
    assert len(result.effects) == 2


async def test_a_denial_after_a_request_that_only_asks_says_that_it_was_sent(tmp_path: Path) -> None:
    def moved(head: bytes, connection: socket.socket) -> None:
        connection.sendall(answer(b"", "302 Found", ["Location: http://127.0.0.2/there"]))

    with raw(moved) as server:
        async with opened(tmp_path, NAMED) as service:
            url = f"http://127.0.0.1:{server.port}/"
            result = await service.invoke("fetch_url", {"url": url})
            posted = await service.invoke("http_request", {"url": url, "method": "POST", "follow": 1})
    assert (result.error.code, "applied" in result.error.details) == ("permission_denied", False)
    assert result.error.message.endswith("; 1 request was sent before")
    assert posted.error.message.endswith("; 1 of its calls had changed something")
