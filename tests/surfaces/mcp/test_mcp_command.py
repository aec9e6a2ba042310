"""The command ``albert mcp``: its session, its options, and what it says about wrong ones."""

from __future__ import annotations

import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.reserved_names import AGENT_TOOLS
from albert_tools.surfaces.cli.main import main
from tests.surfaces.conftest import Albert
from tests.surfaces.mcp.conftest import PATIENCE, Place, make_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = make_place(tmp_path)
    made.new_python = True
    return made


def sessions(place: Place) -> list[dict[str, Any]]:
    return list(place.albert("session", "list", "--all", "--json").document()["sessions"])


async def test_the_process_has_a_session_of_its_own_which_ends_with_it(place: Place):
    options = ("--tools", "read_file", "--client", "editor", "--calls", "2")
    async with place.connect("stdio", *options) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"read_file", "search_tools", "run_tool"} <= {*names}
        assert not {"write_file", "define_tool", "run_source"} & {*names}
        denied = await client.call_tool("write_file", {"path": "a", "content": "b"})
        assert denied.meta["albert/error"]["code"] == "permission_denied"
        (session,) = sessions(place)
        assert (session["client"], session["tools"], session["ended"]) == ("editor", ["read_file"], False)
        assert not (await client.call_tool("read_file", {"path": "notes.md"})).is_error
        assert not (await client.call_tool("read_file", {"path": "notes.md"})).is_error
        spent = await client.call_tool("read_file", {"path": "notes.md"})
        assert spent.meta["albert/error"]["code"] == "budget_exceeded"
    (session,) = sessions(place)
    assert session["ended"]


async def test_a_client_of_few_tools_is_listed_the_agents_own(place: Place):
    async with place.connect("stdio", "--own") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(AGENT_TOOLS)
        ran = await client.call_tool("run_tool", {"name": "read_file", "arguments": {"path": "notes.md"}})
        assert ran.structured_content == {"result": "hello"}
        assert not (await client.call_tool("read_file", {"path": "notes.md"})).is_error


async def test_a_session_that_was_given_is_used_and_goes_on(place: Place):
    token = place.session("--tools", "write_file")
    async with place.connect("stdio", token=token) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "write_file" in names
        assert "read_file" not in names
    (session,) = sessions(place)
    assert not session["ended"]


def test_a_terminated_server_ends_its_session(place: Place):
    server = place.albert.start("mcp", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    server.stdin.flush()
    assert server.stdout.readline()
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE) == 0
    server.stdin.close()
    server.stdout.close()
    assert [session["ended"] for session in sessions(place)] == [True]


@pytest.mark.parametrize(
    ("words", "environ", "message"),
    [
        (["--http", "x"], {}, "--http 'x' is no port"),
        (["--http", "65536"], {}, "--http '65536' is no port"),
        (["--http", "0", "--tools", "read_file"], {}, "the session is that of the client's token"),
        (["--tools", ","], {}, "--tools names no tool"),
        (["--tools", "read_file", "--preset", "read-only"], {}, "both name the tools"),
        (["--elicit"], {"ALBERT_SESSION": "alb_x"}, "by a person, not in a session"),
        (["--http", "0"], {"ALBERT_SESSION": "alb_x"}, "by a person, not in a session"),
        ([], {"ALBERT_SESSION": "alb_x"}, "there is no such session"),
        (["--http", "example.invalid:0"], {}, "can't listen on example.invalid:0"),
    ],
)
def test_wrong_options_are_refused(albert: Albert, words: list[str], environ: dict[str, str | None], message: str):
    done = albert("mcp", *words, env=environ)
    assert done.code in (1, 2, 3)
    assert message in done.err.replace("\n  ", " ")


def test_a_closed_stdin_is_reported(place: Place):
    command = shlex.join([*place.albert.command, "mcp"])
    done = subprocess.run(
        ["bash", "-c", f"{command} <&-"],
        cwd=place.albert.project,
        env=place.albert.environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "stdin is closed" in done.stderr


def test_without_the_sdk_the_command_names_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("albert_tools.surfaces.cli.mcp_command.find_spec", lambda name: None)
    assert main(["mcp"]) == 2
    assert 'pip install "albert-tools[mcp]"' in capsys.readouterr().err
