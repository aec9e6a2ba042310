"""Homes with mounted servers. The servers are real processes; most of them are `raw_server.py`, which starts at once."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mcp
import pytest

from albert_tools.builtins.mounts.mount import Mount, written
from albert_tools.builtins.mounts.pinning import pinned
from tests.helpers.governed import Governed

HERE = Path(__file__).parent
#: Rules under which every call is allowed.
ALLOWED = {"categories": {"execute": {"allowed_in_modes": ["NORMAL"]}}}


@pytest.fixture(autouse=True)
def sdk_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a confined server import the SDK, if this Python gets it from the packages of another environment."""
    site = Path(mcp.__file__).parent.parent
    if not site.is_relative_to(sys.prefix):
        monkeypatch.setattr(sys, "prefix", str(site.parents[2]))


def tool(name: str, *parameters: str, required: bool = True, **more: Any) -> dict[str, Any]:
    """A tool as a server describes it, with parameters that are texts."""
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in parameters}}
    return {"name": name, "inputSchema": {**schema, "required": list(parameters) if required else []}, **more}


class Mounting(Governed):
    """A home with mounted servers. Its service is opened when they are mounted."""

    def __init__(self, base: Path, **options: Any) -> None:
        options.setdefault("governance", ALLOWED)
        super().__init__(base, **options)
        shutil.copy(HERE / "raw_server.py", self.work)
        shutil.copy(HERE / "sdk_server.py", self.work)
        self.mounts: dict[str, Mount] = {}

    def offer(self, *tools: dict[str, Any]) -> None:
        """Set the tools that the raw servers offer."""
        (self.work / "tools.json").write_text(json.dumps(tools))

    def mount(
        self, name: str, *tools: dict[str, Any], words: tuple[str, ...] = ("python3", "raw_server.py"), **more: Any
    ) -> None:
        """Mount a server with these tools as the accepted ones, without starting it; then open the service again."""
        if tools:
            self.offer(*tools)
        command = () if "url" in more else words
        self.mounts[name] = Mount(name, command=command, tools=pinned(name, tools).tools, **more)
        self.service.close()
        file = self.home / "config" / "mounts.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(written(self.mounts.values()))
        self.service = type(self.service).open(home=self.home, workspace=self.work, **self.options)


@pytest.fixture
def mounting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Mounting]]:
    """Makes homes: ``mounting(governance={…})``. Their paths are short, because what a server says is cut."""
    made: list[Mounting] = []

    def make(**options: Any) -> Mounting:
        made.append(Mounting(tmp_path_factory.mktemp("m").resolve(), **options))
        return made[-1]

    try:
        yield make
    finally:
        for each in made:
            each.service.close()
