"""The MCP server as clients meet it: the real command, the SDK's real client, over stdio and HTTP, new and older revisions.

A server over stdio is started for each connection, as clients do: a new Python in the tests of the command, elsewhere a fork of a
process that has imported everything (`Albert.serve`). One server over HTTP serves most tests.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.surfaces.conftest import Albert, Server

#: Everything is allowed, but a person is asked about each new text file and each deletion.
RULES = """
allow: [read_file, write_file, bash]
tools:
  write_file: {requires_approval_in_modes: [NORMAL]}
  bash: {ordinary_commands: ["sleep *", "seq *"]}
"""
#: Seconds that a test waits for something that takes milliseconds.
PATIENCE = 30.0
#: The ways to connect: the transport, and whether the client speaks the newest revision.
WAYS = ("stdio", "stdio, older", "http", "http, older")

Ask = Callable[[Any, types.ElicitRequestParams], Any]


@dataclass
class Place:
    """A home and a workspace, and the server over HTTP that serves them."""

    albert: Albert
    options: tuple[str, ...] = ()
    url: str = ""
    process: Server | None = None
    #: Whether clients over stdio start a new Python.
    new_python: bool = False
    #: The token that clients over HTTP use; a new one for each test.
    token: str = ""
    changes: list[str] = field(default_factory=list)

    def session(self, *options: str) -> str:
        """Open a session. Returns its token."""
        return self.albert("session", "new", *options).out.strip()

    def serve(self) -> None:
        """Start the server over HTTP."""
        self.process = self.albert.serve("mcp", "--http", "0", *self.options, pipes="stderr")
        found = re.search(r"http://\S+/mcp", self.process.stderr.readline().decode())
        assert found, self.process.stderr.read()
        self.url = found.group()

    def stop(self) -> None:
        """Stop the server over HTTP."""
        if self.process is not None:
            self.process.terminate()
            assert self.process.wait() == 0
            self.process = None

    def connect(
        self, way: str, *options: str, ask: Ask | None = None, token: str | None = None
    ) -> AbstractAsyncContextManager[Client]:
        """A connected client. Over stdio, the `options` are those of its server, and `token` is its ALBERT_SESSION."""
        return self._connect(way, options, ask, token)

    @asynccontextmanager
    async def _connect(
        self, way: str, options: tuple[str, ...], ask: Ask | None, token: str | None
    ) -> AsyncIterator[Client]:
        async def changed(message: Any) -> None:
            self.changes.append(getattr(message, "method", ""))

        mode: Any = "legacy" if way.endswith("older") else "auto"
        more: Any = {"mode": mode, "elicitation_callback": ask, "message_handler": changed, "cache": None}
        if way.startswith("stdio"):
            environ = {"ALBERT_SESSION": token} if token else {}
            words, forked = ["mcp", *self.options, *options], None
            if self.new_python:
                words, environ = [*self.albert.command, *words], {**self.albert.environ, **environ}
            else:
                forked = self.albert.serve(*words, pipes="stdin stdout", env=environ)
                # The client starts a process that passes everything on.
                words = ["sh", "-c", 'cat "$1" & exec cat > "$0"', *map(str, forked.streams[:2])]
            program, *rest = words
            command = StdioServerParameters(command=program, args=rest, env=environ, cwd=str(self.albert.project))
            async with Client(stdio_client(command), **more) as client:
                yield client
            if forked is not None:
                assert forked.wait() == 0
        else:
            headers = {"Authorization": f"Bearer {token or self.token}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=PATIENCE, verify=False) as http,
                Client(streamable_http_client(self.url, http_client=http), **more) as client,
            ):
                yield client


def make_place(folder: Path, *options: str) -> Place:
    """A new home and workspace with `RULES`."""
    albert = Albert(folder)
    (albert.home / "config").mkdir(parents=True)
    (albert.home / "config" / "governance.yaml").write_text(RULES)
    (albert.project / "notes.md").write_text("hello")
    return Place(albert, options)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place with a server over HTTP. The users of clients may answer questions."""
    place = make_place(tmp_path_factory.mktemp("served"), "--elicit")
    place.serve()
    yield place
    place.stop()


@pytest.fixture
def place(served: Place) -> Place:
    """The same with a new session for the clients over HTTP."""
    served.token = served.session()
    served.changes.clear()
    return served


async def until(true: Callable[[], Any]) -> None:
    """Wait until the condition is true."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


def said(result: types.CallToolResult) -> str:
    """The text of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
