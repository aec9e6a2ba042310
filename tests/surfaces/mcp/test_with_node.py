"""Clients of others, written in JavaScript: the official conformance suite and the Inspector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.mcp import conformance
from tests.surfaces.mcp.node import npx

pytestmark = pytest.mark.surfaces
ROOT = Path(__file__).parent.parent.parent.parent
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"


def test_every_server_scenario_of_the_conformance_suite_passes():
    code, output = conformance.run()

    lines = conformance.summary(output)
    assert code == 0, "\n".join(lines) or output
    assert len([line for line in lines if line.startswith("✓")]) == 32, lines


def inspect(folder: Path, *words: str) -> Any:
    """Run the Inspector's command line with a new server, and return the answer."""
    (folder / ".albert").mkdir(exist_ok=True)
    environ = {**os.environ, "ALBERT_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    server = [sys.executable, "-m", "albert_tools.surfaces.cli", "mcp"]
    command = npx(INSPECTOR, "mcp-inspector", "--cli", *server, *words)
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_inspector_calls_a_tool(tmp_path: Path):
    (tmp_path / "notes.md").write_text("hello")

    called = inspect(tmp_path, "--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=notes.md")

    assert called["structuredContent"] == {"result": "hello"}
