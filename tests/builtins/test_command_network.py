"""Commands with a network reach only the hosts that the rules name, and only through the proxy."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins.git import git
from albert_tools.builtins.net.client import Client
from albert_tools.builtins.shell import shell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.sandbox.command.confinement import found
from albert_tools.engine.workspace.workspace import Workspace
from tests.helpers.network import answer, calling, raw

#: A client that uses the proxy from the environment.
FETCH = "import sys, urllib.request as r\nprint(r.urlopen(sys.argv[1], timeout=20).read().decode())"
#: A client that connects directly.
DIRECT = "import socket, sys\nsocket.create_connection((sys.argv[1], int(sys.argv[2])), 5)\nprint('reached')"


async def call(tool: Primitive, arguments: dict[str, Any], root: Path, rules: dict[str, Any], **settings: Any) -> Any:
    assert "bwrap" in found().kinds, f"the tests need bwrap: {found().missing.get('bwrap')}"
    client = Client()
    with Workspace(root) as workspace:
        context = calling(tool, arguments, rules, client, 60)
        context.workspace, context.settings = workspace, {"confinement": "bwrap", **settings}
        try:
            return await call_primitive(tool, arguments, context), context
        finally:
            await client.aclose()


def allowing(tool: str, *hosts: str) -> dict[str, Any]:
    return {"tools": {tool: {"allowed_hosts": list(hosts)}}}


async def test_a_host_that_the_rules_name(root: Path) -> None:
    with raw(lambda head, c: c.sendall(answer(b"served"))) as server:
        argv = ["python3", "-c", FETCH, f"http://127.0.0.1:{server.port}/x"]
        result, context = await call(
            shell.run_program, {"argv": argv, "network": True}, root, allowing("run_program", "127.0.0.1")
        )
    assert (result["exit_code"], result["output"]) == (0, "served\n")
    seen = [facts for kind, facts in context.effects if kind == "network"]
    assert [(f["method"], f["url"], f["refused"]) for f in seen] == [("GET", f"http://127.0.0.1:{server.port}/x", None)]


async def test_a_free_host_is_reached_and_others_are_not(root: Path) -> None:
    rules = {"free_hosts": ["127.0.0.1"]}
    with raw(lambda head, c: c.sendall(answer(b"served"))) as server:
        results = []
        for host in ("127.0.0.1", "localhost"):
            argv = ["python3", "-c", FETCH, f"http://{host}:{server.port}/x"]
            results.append(await call(shell.run_program, {"argv": argv, "network": True}, root, rules))
    assert [result["exit_code"] for result, _ in results] == [0, 1]
    (refused,) = [facts["refused"] for kind, facts in results[1][1].effects if kind == "network"]
    assert refused == "permission_denied"


async def test_other_hosts_and_direct_connections_fail(root: Path) -> None:
    with raw(lambda head, c: c.sendall(answer(b"served"))) as server:
        port = str(server.port)
        for argv in (
            ["python3", "-c", FETCH, f"http://127.0.0.1:{port}/x"],
            ["python3", "-c", DIRECT, "127.0.0.1", port],
            ["python3", "-c", DIRECT, "example.org", "443"],
        ):
            result, _ = await call(
                shell.run_program, {"argv": argv, "network": True}, root, allowing("run_program", "example.org")
            )
            assert result["exit_code"] == 1, result
            assert "served" not in result["output"]
            assert "reached" not in result["output"]
        assert server.connections == 0


async def test_without_the_argument_there_is_no_network(root: Path) -> None:
    with raw(lambda head, c: c.sendall(answer(b"served"))) as server:
        argv = ["python3", "-c", FETCH, f"http://127.0.0.1:{server.port}/x"]
        result, _ = await call(shell.run_program, {"argv": argv}, root, allowing("run_program", "127.0.0.1"))
        assert result["exit_code"] == 1
        assert server.connections == 0


async def test_under_landlock_there_is_no_network(root: Path) -> None:
    arguments = {"argv": ["true"], "network": True}
    with pytest.raises(Failure, match="only behind bubblewrap") as caught:
        await call(shell.run_program, arguments, root, allowing("run_program", "127.0.0.1"), confinement="landlock")
    assert caught.value.code == "sandbox_unavailable"


class Remote(BaseHTTPRequestHandler):
    """git's HTTP server."""

    root: Path

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        environment = {
            "PATH": "/usr/bin:/bin",
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            "REMOTE_USER": "somebody",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    """Return the address of an empty bare repository."""
    top = tmp_path / "remote"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(top / "it.git")], check=True)
    subprocess.run(["git", "-C", str(top / "it.git"), "config", "http.receivepack", "true"], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Remote,), {"root": top}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/it.git"
    server.shutdown()
    server.server_close()


async def test_git_with_a_remote(root: Path, remote: str) -> None:
    rules = allowing("git", "127.0.0.1")

    async def run(operation: str, *args: str, cwd: str = "", url: str | None = None) -> Any:
        given = {"operation": operation, "args": list(args), "cwd": cwd, "url": url}
        result, _ = await call(git.git, given, root, rules)
        assert result["exit_code"] == 0, result
        return result["output"]

    await run("CLONE", "--quiet", url=remote)
    (root / "it" / "a.txt").write_text("one\n")
    await run("ADD", "a.txt", cwd="it")
    await run("COMMIT", "-m", "first", cwd="it")
    await run("PUSH", "-u", "origin", "HEAD", cwd="it")
    await run("CLONE", "--depth=1", url=remote, cwd="it")
    assert (root / "it" / "it" / "a.txt").read_text() == "one\n"
    (root / "it" / "a.txt").write_text("two\n")
    await run("COMMIT", "-am", "second", cwd="it")
    await run("PUSH", cwd="it")
    await run("FETCH", cwd="it/it")
    await run("PULL", "--ff-only", cwd="it/it")
    assert (root / "it" / "it" / "a.txt").read_text() == "two\n"


async def test_git_reaches_no_other_host_and_no_file(root: Path, remote: str, tmp_path: Path) -> None:
    rules = allowing("git", "example.org")
    result, _ = await call(git.git, {"operation": "CLONE", "url": remote}, root, rules)
    assert result["exit_code"] == 128
    assert not (root / "it" / ".git" / "HEAD").exists()
    subprocess.run(["git", "init", "-q", str(root / "here")], check=True)
    for address in (str(tmp_path / "remote/it.git"), f"file://{tmp_path}/remote/it.git", "git@example.org:it.git"):
        subprocess.run(["git", "-C", str(root / "here"), "remote", "add", "x", address], check=True)
        result, _ = await call(git.git, {"operation": "FETCH", "args": ["x"], "cwd": "here"}, root, rules)
        assert result["exit_code"] == 128, result
        assert "not allowed" in result["output"], result
        subprocess.run(["git", "-C", str(root / "here"), "remote", "remove", "x"], check=True)
