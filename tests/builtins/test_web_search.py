"""web_search against a local service that uses a provider's protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from albert_tools.builtins.net.client import Client
from albert_tools.builtins.net.web_search import web_search, wrong_settings
from tests.helpers.network import answer, called, raw

FOUND = {
    "results": [
        {
            "title": "<b>Otters</b> &amp; rivers",
            "url": "https://example.org/otters",
            "content": "About\n otters",
            "engine": "x",
        },
        {"title": "No address", "url": "javascript:alert(1)", "content": ""},
        {"title": "No address at all"},
        "not even a result",
        {"title": None, "url": "http://example.org", "content": ["x"]},
    ]
}


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client()
    yield client
    await client.aclose()


async def search(
    client: Client, settings: dict[str, Any], served: bytes = b"", more: Any = None, **arguments: Any
) -> Any:
    given = {"query": "otters & rivers", **arguments}
    with raw(lambda head, c: c.sendall(served)) as server:
        settings = {k: v.replace("{port}", str(server.port)) if k == "url" else v for k, v in settings.items()}
        rules = {"primitives": {"web_search": settings}, **(more or {})}
        result, context = await called(web_search, given, rules, client)
    return result, server, context


def served(value: Any, status: str = "200 OK", *headers: str) -> bytes:
    return answer(json.dumps(value).encode(), status, headers)


SEARXNG = {"provider": "searxng", "url": "http://127.0.0.1:{port}/search"}


async def test_results_are_plain_text(client: Client) -> None:
    got, server, context = await search(client, SEARXNG, served(FOUND))
    assert got == [
        {"title": "Otters & rivers", "url": "https://example.org/otters", "snippet": "About otters"},
        {"title": "", "url": "http://example.org/", "snippet": ""},
    ]
    target = urlsplit(server.seen[0].split()[1].decode())
    assert parse_qs(target.query) == {"q": ["otters & rivers"], "format": ["json"]}
    assert [kind for kind, _ in context.effects] == ["network"]


async def test_the_count_is_a_maximum(client: Client) -> None:
    many = {"results": [{"title": str(i), "url": f"https://example.org/{i}", "content": ""} for i in range(60)]}
    assert len((await search(client, SEARXNG, served(many), count=7))[0]) == 7


async def test_a_service_can_be_described_in_the_configuration(client: Client, monkeypatch: Any) -> None:
    monkeypatch.setenv("ALBERT_SECRET_SEARCH", "very-secret-key")
    settings = {
        "url": "http://127.0.0.1:{port}/find?lang=en",
        "parameters": {"text": "{query}", "size": "{count}"},
        "headers": {"x-key": {"secret": "SEARCH"}},
        "results": "web.items",
        "title": "name",
        "link": "address",
        "snippet": "key",
    }
    items = {"web": {"items": [{"name": "A", "address": "https://a.example/", "key": "you sent very-secret-key"}]}}
    more = {"secrets": {"SEARCH": ["127.0.0.1"]}}
    got, server, context = await search(client, settings, served(items), more)
    assert got == [{"title": "A", "url": "https://a.example/", "snippet": "you sent [redacted]"}]
    assert b"lang=en&text=otters+%26+rivers&size=10" in server.seen[0]
    assert b"x-key: very-secret-key" in server.seen[0]
    assert "very-secret-key" not in repr(context.effects)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({}, "not_found"),
        ({"provider": "searxng"}, "not_found"),
        ({"provider": "altavista", "url": "https://a.example/"}, "invalid_arguments"),
        ({"url": "https://a.example/", "querry": "q"}, "invalid_arguments"),
        ({"url": "https://a.example/", "parameters": ["q"]}, "invalid_arguments"),
        ({"url": "file:///etc/passwd"}, "invalid_arguments"),
        ({"provider": "brave"}, "permission_denied"),
    ],
)
async def test_an_invalid_configuration(client: Client, settings: dict[str, Any], code: str) -> None:
    got, _, context = await search(client, settings)
    assert got.code == code
    assert context.effects == []


@pytest.mark.parametrize(
    ("settings", "place", "message"),
    [
        ({"provider": "braev"}, "provider", "unknown provider 'braev'; did you mean 'brave'?"),
        ({"provider": ["brave"]}, "provider", "unknown provider ['brave']; known: searxng, brave"),
        ({"provider": "brave", "querry": "q"}, "querry", "there is no such setting"),
        ({"provider": "brave", "parameters": ["q"]}, "", "Expected `object`, got `array` - at `$.parameters`"),
        ({"provider": "brave", "parameters": {"page": 1}}, "", "Expected `str`, got `int` - at `$.parameters[...]`"),
        ({"provider": "brave", "title": None}, "", "Expected `str`, got `null` - at `$.title`"),
    ],
)
def test_mistakes_in_the_settings(settings: dict[str, Any], place: str, message: str) -> None:
    ((where, said),) = wrong_settings(settings)
    assert (where, said.removeprefix("the configuration of web_search has a mistake: ")) == (place, message)


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (answer(b"<html>"), "network_error"),
        (served({"other": []}), "network_error"),
        (served([]), "network_error"),
        (answer(b"[" * 500_000), "network_error"),
        (served({}, "403 Forbidden"), "network_error"),
        (served({}, "429 Too Many Requests", "Retry-After: 30"), "rate_limited"),
    ],
)
async def test_an_invalid_answer(client: Client, response: bytes, code: str) -> None:
    got, _, context = await search(client, SEARXNG, response)
    assert got.code == code
    assert len(context.effects) == 1


async def test_the_rules_can_forbid_the_service(client: Client) -> None:
    more = {"tools": {"web_search": {"forbidden_hosts": ["127.0.0.1"]}}}
    got, server, _ = await search(client, SEARXNG, served(FOUND), more)
    assert (got.code, got.rule) == ("permission_denied", "tools.web_search.forbidden_hosts")
    assert server.connections == 0
