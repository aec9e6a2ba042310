"""fetch_url against pages of a real server. A confined process parses the pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from albert_tools.builtins.net.client import Client
from albert_tools.builtins.net.pages import fetch_url
from albert_tools.engine.model.failure import Failure
from tests.helpers.network import Calling, answer, called, raw

RULES = {"tools": {"fetch_url": {"allowed_hosts": ["127.0.0.1"]}}}

ARTICLE = """<!doctype html><html><head><title>On  Otters &amp; Rivers</title><script>alert("no")</script></head>
<body><nav><a href="/a">Home</a> <a href="/b">Shop</a></nav>
<article><h1>On Otters</h1>
<p>The otter lives along rivers and eats fish, which it catches with some skill, mostly at night and in winter too.</p>
<p>Otters <a href="/more">sleep in holts</a>, which have several entrances, some of them under the water line of the river.</p>
<ul><li>They swim well.</li><li>They run badly.</li></ul></article>
<footer>Copyright, imprint, cookies</footer></body></html>"""


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client()
    yield client
    await client.aclose()


async def read(client: Client, served: bytes, **more: Any) -> tuple[Any, Calling]:
    with raw(lambda head, c: c.sendall(served)) as server:
        arguments = {"url": f"http://127.0.0.1:{server.port}/page", **more}
        return await called(fetch_url, arguments, RULES, client, remaining=60)


def page(text: str | bytes, kind: str = "text/html; charset=utf-8", status: str = "200 OK") -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return answer(data, status, [f"Content-Type: {kind}"])


async def test_the_main_text_of_a_page(client: Client) -> None:
    got, context = await read(client, page(ARTICLE))
    assert (got["status"], got["content_type"], got["title"]) == (200, "text/html", "On Otters & Rivers")
    assert "catches with some skill" in got["text"]
    assert "They swim well." in got["text"]
    assert "/more" not in got["text"]
    for rest in ("alert", "Shop", "cookies"):
        assert rest not in got["text"]
    assert not got["truncated"]
    assert [kind for kind, _ in context.effects] == ["network"]


async def test_links_are_included_on_request(client: Client) -> None:
    got, _ = await read(client, page(ARTICLE), links=True)
    assert "/more)" in got["text"]


async def test_a_long_text_is_truncated(client: Client) -> None:
    got, _ = await read(client, page("word " * 1000, "text/plain"), limit=100)
    assert (len(got["text"]), got["truncated"]) == (100, True)


@pytest.mark.parametrize(
    ("served", "part"),
    [
        (page('{"a": 1}', "application/json"), '{"a": 1}'),
        (page("# Title\n", "text/markdown"), "# Title\n"),
        (page("<p>Only a little.", "text/html"), "Only a little."),
        (page(ARTICLE.replace("skill", "G\xe9nie").encode("latin-1"), "text/html; charset=latin-1"), "G\xe9nie"),
        (page(ARTICLE, "text/html; charset=no-such"), "catches with some skill"),
        (page("nothing here", "text/plain", "404 Not Found"), "nothing here"),
        (page(b"", "text/html"), ""),
    ],
)
async def test_other_text_and_malformed_pages(client: Client, served: bytes, part: str) -> None:
    got, _ = await read(client, served)
    assert part in got["text"]


async def test_binary_content_is_refused(client: Client) -> None:
    got, context = await read(client, page(b"\x89PNG", "image/png"))
    assert (got.code, "image/png" in got.message) == ("encoding_error", True)
    assert len(context.effects) == 1


@pytest.mark.parametrize(
    "hostile",
    [
        "<div>" * 200_000 + "deep",
        "<table><tr><td>" * 20_000 + "deep",
        "<a" + " x=y" * 200_000 + ">many</a>",
        "<!--" * 100_000,
        "<p>&" + "amp;" * 200_000,
        '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><p>&c;</p>',
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><p>&b;</p>',
        "\0\1\2" * 1000,
    ],
    ids=["deep", "deep tables", "attributes", "comments", "entities", "own entities", "file entities", "controls"],
)
async def test_hostile_pages_are_read_or_refused(client: Client, hostile: str) -> None:
    got, _ = await read(client, page(hostile))
    if isinstance(got, Failure):
        assert got.code in ("timeout", "cpu_limit", "memory_limit", "result_limit", "exception")
    else:
        assert "root:" not in got["text"]


async def test_without_the_library_the_hint_says_what_to_install(client: Client, monkeypatch: Any) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "trafilatura" else found(name))
    got, context = await read(client, page(ARTICLE))
    assert (got.code, 'pip install "albert-tools[pages]"' in got.hint) == ("not_found", True)
    assert context.effects == []
