"""What a command prints is shown while it runs: whole lines, bounded, and without secrets, also across the borders of texts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from albert_tools import ToolService
from albert_tools.builtins.shell import live_output
from albert_tools.builtins.shell.live_output import LiveOutput


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_output, "AFTER", 0.0)
    monkeypatch.setattr(live_output, "EVERY", 0.0)


async def said(*pieces: bytes) -> list[str]:
    """What is said, with time to say it after each piece."""
    found: list[str] = []
    live = LiveOutput(found.append)
    for piece in pieces:
        live.add(piece)
        for _ in range(3):
            await asyncio.sleep(0)
    live.close()
    return found


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        ([b"a\nb", b"c\nd"], ["a\n", "bc\n"]),
        ([b"10 %\r20 %\r", b"30 %\r\n"], ["10 %\n20 %\n", "30 %\n"]),
        ([b"\xc3", b"\xa9\n"], ["é\n"]),
        ([b"key ghp_0123456789abcdef", b"0123456789\n"], ["key [redacted]\n"]),
        ([b"password:\n", b"hunter2hunter2\n"], ["password:\n", "[redacted]\n"]),
        (
            [b"a\n-----BEGIN PRIVATE KEY-----\nMIIE", b"abc\n", b"-----END PRIVATE KEY-----\nb\n"],
            ["a\n", "[redacted]\nb\n"],
        ),
        ([b"-----BEGIN PRIVATE KEY-----\nMIIE\n" * 9], []),
        ([b"x" * 70_000 + b"\n", b"y\n"], ["… further output is in the result\n"]),
        ([b"z\n" * 40_000, b"y\n"], ["z\n" * 32_768, "… further output is in the result\n"]),
    ],
    ids=lambda v: repr(v)[:40],
)
async def test_lines_are_said_without_secrets(pieces: list[bytes], texts: list[str]) -> None:
    assert await said(*pieces) == texts


@pytest.mark.parametrize("inside", [False, True])
async def test_a_command_is_heard_before_it_ends(tmp_path: Path, inside: bool) -> None:
    (tmp_path / "work" / ".albert").mkdir(parents=True)
    source = '''
def wait() -> str:
    """Run a command."""
    print("begun")
    return tools.bash(command="echo one; while [ ! -e go ]; do sleep 0.05; done; echo two")["output"]
'''
    heard: list[tuple[str, str]] = []

    def listen(tool: str, text: str) -> None:
        heard.append((tool, text))
        if "one" in text:
            (tmp_path / "work" / "go").touch()

    rules: dict[str, Any] = {"allow": ["bash"], "tools": {"bash": {"ordinary_commands": ["*"]}}}
    async with ToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", governance=rules) as service:
        if inside:
            await service.define(source)
            output = (await service.invoke("wait", {}, log=listen)).value()
        else:
            command = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two"
            output = (await service.invoke("bash", {"command": command}, log=listen)).value()["output"]
    assert output == "one\ntwo\n"
    assert heard[-1 if heard[-1][1] == "one\n" else -2] == ("bash", "one\n")
