"""Which commands let a session see content from outside: those that have asked for anything over the network."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.gate import until
from tests.helpers.governed import Governed, governing
from tests.helpers.network import hello, raw


@pytest.fixture
def govern(tmp_path: Path) -> Iterator[Callable[..., Governed]]:
    with governing(tmp_path) as made:
        yield made


@pytest.fixture
def home(govern: Callable[..., Governed]) -> Governed:
    anything = {"ordinary_commands": ["*"]}
    tools = {"bash": anything, "run_program": anything, "git": {"allowed_operations": ["CLONE", "FETCH", "STATUS"]}}
    return govern(governance={"free_hosts": ["127.0.0.1"], "allow": ["bash", "run_program", "git"], "tools": tools})


def seen(home: Governed, tool: str, arguments: dict[str, Any]) -> dict[str, str]:
    """What a new session has seen after a call."""
    session, token = home.service.within(lambda s: s.open_session("agent"))
    error = home.service.invoke(tool, arguments, session=token).error
    assert error is None, error
    found: dict[str, str] = home.service.within(lambda s: s.sessions.seen(s.sessions.line(session.id)))
    return found


def test_a_command_that_has_asked_over_the_network_shows_content_from_outside(home: Governed) -> None:
    with raw(hello) as server:
        url = f"http://127.0.0.1:{server.port}/x"
        home.service.define(
            "def load(url: str) -> None:\n"
            '    """Load."""\n'
            '    tools.run_program(argv=["curl", "-s", "-o", "loaded", url], network=True)\n'
        )
        calls: list[tuple[str, dict[str, Any]]] = [
            ("bash", {"command": f"curl -s {url}", "network": True}),
            ("bash", {"command": f"curl -s -o file {url}", "network": True}),
            ("bash", {"command": f"curl -s -o file {url}; exit 3", "network": True}),
            ("run_program", {"argv": ["curl", "-s", url], "network": True}),
            ("load", {"url": url}),
            ("git", {"operation": "CLONE", "url": url}),
        ]
        for tool, arguments in calls:
            assert seen(home, tool, arguments) == {"outside": "content of 127.0.0.1"}, arguments
        assert server.connections >= len(calls)


def test_what_a_command_gets_while_it_runs_counts_at_once(home: Governed) -> None:
    session, token = home.service.within(lambda s: s.open_session("agent"))
    with raw(hello) as server, ThreadPoolExecutor() as pool:
        command = f"curl -s -o file http://127.0.0.1:{server.port}/x; while [ ! -e go ]; do sleep 0.05; done"
        running = pool.submit(home.service.invoke, "bash", {"command": command, "network": True}, session=token)
        try:
            until((home.work / "file").exists)
            found = home.service.within(lambda s: s.sessions.seen(s.sessions.line(session.id)))
            assert found == {"outside": "content of 127.0.0.1"}
        finally:
            (home.work / "go").touch()
        assert running.result().ok


@pytest.mark.parametrize("is_approved", [False, True])
def test_a_command_sends_nothing_after_its_session_has_seen_what_the_rules_are_about(
    govern: Callable[..., Governed], is_approved: bool
) -> None:
    denied = {"from": {"session": ["private"]}, "to": {"effects": ["network"]}}
    tools = {"bash": {"ordinary_commands": ["*"]}}
    home = govern(governance={"free_hosts": ["127.0.0.1"], "allow": ["bash"], "tools": tools, "deny_flow": [denied]})
    (home.work / ".env").write_text("KEY=1")
    for others, code in (("notes.md", 0), (".env", 0 if is_approved else 22)):
        (home.work / "notes.md").write_text("notes")
        (home.work / "go").unlink(missing_ok=True)
        (home.work / "begun").unlink(missing_ok=True)
        _, token = home.service.within(lambda s: s.open_session("agent"))
        with raw(hello) as server, ThreadPoolExecutor() as pool:
            url = f"http://127.0.0.1:{server.port}/x"
            command = f"touch begun; while [ ! -e go ]; do sleep 0.05; done; curl -sf -o file {url}"
            # Of an approved version all was reviewed but its arguments.
            source = 'def fetch() -> int:\n    """Fetch."""\n    return tools.bash(command={!r}, network=True)["exit_code"]\n'
            home.service.define(source.format(command))
            if is_approved:
                home.service.approve("fetch", "ann")
            running = pool.submit(home.service.invoke, "fetch", {}, session=token)
            try:
                until((home.work / "begun").exists)
                assert home.service.invoke("read_file", {"path": others}, session=token).ok
            finally:
                (home.work / "go").touch()
            assert running.result().value() == code
            assert server.connections == (code == 0)


def test_what_a_command_has_got_counts_together_with_what_others_see_meanwhile(home: Governed) -> None:
    (home.work / ".env").write_text("KEY=1")
    _, token = home.service.within(lambda s: s.open_session("agent"))
    with raw(hello) as server, ThreadPoolExecutor() as pool:
        url = f"http://127.0.0.1:{server.port}/x"
        command = f"curl -s -o file {url}; while [ ! -e go ]; do sleep 0.05; done; curl -sf -o file {url}"
        running = pool.submit(home.service.invoke, "bash", {"command": command, "network": True}, session=token)
        try:
            until((home.work / "file").exists)
            assert home.service.invoke("read_file", {"path": ".env"}, session=token).ok
        finally:
            (home.work / "go").touch()
        assert running.result().value()["exit_code"] == 22
        assert server.connections == 1


def test_git_fetches_content_from_outside(home: Governed) -> None:
    with raw(hello) as server:
        subprocess.run(["git", "init", "-q", "repository"], cwd=home.work, check=True)
        fetch = {"operation": "FETCH", "url": f"http://127.0.0.1:{server.port}/x", "cwd": "repository"}
        assert seen(home, "git", fetch) == {"outside": "content of 127.0.0.1"}
        assert seen(home, "git", {"operation": "STATUS", "cwd": "repository"}) == {}


def test_a_command_that_reaches_nothing_shows_nothing_from_outside(home: Governed) -> None:
    with raw(hello) as server:
        url = f"http://127.0.0.1:{server.port}/x"
        assert seen(home, "bash", {"command": f"curl -s {url}"}) == {}
        assert seen(home, "bash", {"command": "echo hi", "network": True}) == {}
        assert server.connections == 0
