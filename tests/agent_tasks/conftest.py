"""A service in which an agent defines its tools and a user calls them, and servers on this machine for them to use.

Each tool in `programs/` was written for one of the tasks by a reader of `albert prompt` alone.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Question
from tests.helpers.governed import Governed
from tests.helpers.network import answer, raw

PROGRAMS = Path(__file__).parent / "programs"
#: A new name asks a person; its address is this machine.
RULES = {
    "free_hosts": ["127.0.0.1"],
    "secrets": {"MAIL": ["127.0.0.1"]},
    "tools": {"http_request": {"allowed_addresses": ["127.0.0.0/8", "::1"]}},
}

#: Answers a request: its method, path and body, as a status and a body. A dict of headers may come third.
Site = Callable[[str, str, str], tuple[Any, ...]]


class Desk:
    """A user's workspace. The person at the desk answers questions about the tools in `refused` with no, and others with yes."""

    def __init__(self, base: Path) -> None:
        self.questions: list[str] = []
        self.refused: set[str] = set()
        self.requests: list[tuple[str, str, str]] = []
        self.heads: list[str] = []
        self._governed = Governed(base, governance=RULES, ask=self._ask)
        self._service = self._governed.service
        self.work = self._governed.work
        self._defined: set[str] = set()
        self._sites = ExitStack()

    async def _ask(self, question: Question) -> bool:
        self.questions.append(question.tool.name)
        return question.tool.name not in self.refused

    def clear(self) -> None:
        """Make a new day: an empty workspace, no servers, no questions."""
        self._sites.close()
        for path in self.work.iterdir():
            if path.is_dir() and path.name != ".albert":
                shutil.rmtree(path)
            elif path.is_file():
                path.unlink()
        self.questions.clear()
        self.refused.clear()
        self.requests.clear()
        self.heads.clear()

    def close(self) -> None:
        self.clear()
        self._service.close()

    def write(self, files: Mapping[str, str]) -> None:
        for path, content in files.items():
            target = self.work / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode())

    def read(self, path: str) -> str:
        return (self.work / path).read_bytes().decode()

    def command(self, *argv: str, cwd: str = "") -> str:
        """Run a program as the user, outside of any sandbox."""
        done = subprocess.run(argv, cwd=self.work / cwd, check=True, capture_output=True, text=True)
        return done.stdout

    def serve(self, site: Site, host: str = "127.0.0.1") -> str:
        """Start a server and return its address."""

        def handle(request: bytes, connection: socket.socket) -> None:
            head, _, body = request.decode().partition("\r\n\r\n")
            method, path, _ = head.split(None, 2)
            self.requests.append((method, path, body))
            self.heads.append(head)
            status, content, *headers = site(method, path, body)
            text = content if isinstance(content, str) else json.dumps(content)
            lines = [f"{name}: {value}" for name, value in (headers[0] if headers else {}).items()]
            connection.sendall(answer(text.encode(), f"{status} Some", lines))

        server = self._sites.enter_context(raw(handle))
        return f"http://{host}:{server.port}"

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Define the agent's tool, with its examples, and call it."""
        if tool not in self._defined:
            self._service.define((PROGRAMS / f"{tool}.tool").read_text(encoding="utf-8"))
            self._defined.add(tool)
        return self._service.invoke(tool, arguments).value()


@pytest.fixture(scope="package")
def _opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp("desk").resolve())
    try:
        yield desk
    finally:
        desk.close()


@pytest.fixture
def desk(_opened: Desk) -> Iterator[Desk]:
    try:
        yield _opened
    finally:
        _opened.clear()
