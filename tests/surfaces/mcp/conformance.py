"""Runs every server scenario of the official conformance suite of MCP: ``make conformance``.

It needs npx, which downloads the suite. The suite needs Node 22; an older Node gets one from npm.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.surfaces.mcp.node import npx

SUITE = "@modelcontextprotocol/conformance@0.1.16"
ROOT = Path(__file__).parent.parent.parent.parent


def run() -> tuple[int, str]:
    """Return the suite's exit code and its output."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.surfaces.mcp.conformance_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            command = npx(SUITE, "conformance", "server", "--url", url, "--suite", "all")
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    finally:
        server.terminate()
        server.wait()
    return done.returncode, done.stdout + done.stderr


def summary(output: str) -> list[str]:
    """The lines about the scenarios, and the total."""
    found = re.sub(r"\x1b\[[0-9;]*m", "", output[output.rfind("=== SUMMARY ===") :])
    return [line for line in found.partition("\nnpm ")[0].splitlines() if line.strip()]


def main() -> int:
    """Print the summary. Returns the suite's exit code."""
    code, output = run()
    print("\n".join(summary(output)) if "=== SUMMARY ===" in output else output)
    return code


if __name__ == "__main__":
    sys.exit(main())
