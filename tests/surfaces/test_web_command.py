"""Calls the web tools from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.network import answer, raw

from .conftest import Albert

PAGE = (
    b"<html><head><title>T</title></head><body><article><p>"
    + b"The otter eats fish. " * 20
    + b"</p></article></body></html>"
)
FOUND = json.dumps({"results": [{"title": "Otters", "url": "https://example.org/", "content": "fish"}]}).encode()


@pytest.mark.parametrize("tool", ["http_request", "fetch_url", "web_search"])
def test_allowed_recorded_and_denied(albert: Albert, tmp_path: Path, tool: str) -> None:
    body = FOUND if tool == "web_search" else PAGE
    with raw(lambda head, c: c.sendall(answer(body, headers=["Content-Type: text/html"]))) as server:
        url = f"http://127.0.0.1:{server.port}/x"
        given = "query=otters" if tool == "web_search" else f"url={url}"
        rules = {
            "categories": {"network": {"allowed_hosts": ["127.0.0.1"]}},
            "primitives": {"web_search": {"provider": "searxng", "url": url}},
        }
        config = albert.home / "config"
        config.mkdir(parents=True)
        (config / "governance.yaml").write_text(json.dumps(rules))
        done = albert("run", tool, given, "--json")
        assert done.code == 0, done.err
        assert "fish" in json.dumps(done.document())
        assert "http://127.0.0.1" in albert("ledger", "tail", "--json").out
        assert tool in albert("tools").out
        rules["categories"]["network"] = {"allowed_hosts": ["127.0.0.1"], "forbidden_hosts": ["127.0.0.1"]}
        (config / "governance.yaml").write_text(json.dumps(rules))
        before = server.connections
        denied = albert("run", tool, given)
        assert denied.code == 3
        assert "the host '127.0.0.1' is forbidden" in denied.err
        assert server.connections == before
