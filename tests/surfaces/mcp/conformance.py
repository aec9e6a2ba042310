"""Runs what two revisions of MCP require of servers, by the official conformance suite: ``make conformance``.

It needs npx, which downloads the suite. The suite needs Node 22; an older Node gets one from npm.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.surfaces.mcp.node import npx

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
#: The newest older revision, and the newest one.
REVISIONS = ("2025-11-25", "2026-07-28")
ROOT = Path(__file__).parent.parent.parent.parent


def run(revision: str) -> tuple[int, str]:
    """Return the suite's exit code and its output for the scenarios that a revision requires."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.surfaces.mcp.conformance_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            command = npx(SUITE, "conformance", "server", "--url", url, "--requirements", revision)
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
    """Print the summaries. Returns 0 if all that is required has passed."""
    failed = 0
    for revision in REVISIONS:
        code, output = run(revision)
        print(f"MCP {revision}")
        print("\n".join(summary(output)) if "=== SUMMARY ===" in output else output)
        failed = failed or code
    return failed


if __name__ == "__main__":
    sys.exit(main())
