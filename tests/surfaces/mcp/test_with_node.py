"""Programs of others: the official conformance suite, the Inspector, and what checks and starts an MCP bundle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.helpers.identity_provider import Provider
from tests.surfaces.mcp import conformance
from tests.surfaces.mcp.node import npx
from tests.surfaces.mcp.test_sign_in import team_at

pytestmark = pytest.mark.surfaces
ROOT = Path(__file__).parent.parent.parent.parent
BUNDLER = "@anthropic-ai/mcpb@2.1.2"
OIDC_PROVIDER = "oidc-provider@9.13.3"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"


@pytest.mark.parametrize(("revision", "scenarios"), [("2025-11-25", 30), ("2026-07-28", 37)])
def test_the_scenarios_pass_that_a_revision_requires(revision: str, scenarios: int):
    code, output = conformance.run(revision)

    lines = conformance.summary(output)
    assert code == 0, "\n".join(lines) or output
    passed = [line for line in lines if line.startswith("✓") and " 0 passed" not in line]
    assert len(passed) >= scenarios, lines


def inspect(folder: Path, *words: str) -> Any:
    """Run the Inspector's command line with a new server, and return the answer."""
    (folder / ".albert").mkdir(exist_ok=True)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    # The Inspector gives a server few variables, and ALBERT_HOME isn't among them.
    server = ["env", f"ALBERT_HOME={folder / 'home'}", sys.executable, "-m", "albert_tools.surfaces.cli", "mcp"]
    command = npx(INSPECTOR, "mcp-inspector", "--cli", *server, *words)
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_inspector_calls_a_tool(tmp_path: Path):
    (tmp_path / "notes.md").write_text("hello")

    called = inspect(tmp_path, "--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=notes.md")

    assert called["structuredContent"] == {"result": "hello"}


async def test_a_person_signs_in_at_a_certified_provider(tmp_path: Path):
    script = str(Path(__file__).with_name("oidc_provider.mjs"))
    served = subprocess.Popen(
        npx(OIDC_PROVIDER, "node", script), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert served.stdin is not None
    assert served.stdout is not None
    try:
        team = team_at(tmp_path, Provider(served.stdout.readline().strip()))
        async with team.person() as client:
            called = await client.call_tool("read_file", {"path": "notes.md"})
            assert called.structured_content == {"result": "hello"}
        assert [session["person"]["subject"] for session in team.sessions()] == ["ada"]
        team.stop()
    finally:
        served.stdin.close()
        served.stdout.close()
        served.wait(60)


async def test_a_host_checks_and_starts_the_bundle(tmp_path: Path):
    made = subprocess.run(
        ["make", "bundle", f"VENV={sys.prefix}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    (bundle,) = (ROOT / "dist").glob("*.mcpb")
    with zipfile.ZipFile(bundle) as packed:
        packed.extractall(tmp_path / "bundle")
    checked = subprocess.run(
        npx(BUNDLER, "mcpb", "validate", str(tmp_path / "bundle" / "manifest.json")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (tmp_path / "work" / ".albert").mkdir(parents=True)
    config = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["server"]["mcp_config"]
    assert config["command"] == "uv"
    given = {"${__dirname}": str(tmp_path / "bundle"), "${user_config.workspace}": str(tmp_path / "work")}
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "uv", *(given.get(word, word) for word in config["args"])],
        env={**os.environ, "ALBERT_HOME": str(tmp_path / "home")},
    )
    async with Client(stdio_client(command), mode="auto", cache=None) as client:
        assert "define_tool" in [tool.name for tool in (await client.list_tools()).tools]
