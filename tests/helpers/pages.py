"""Runs the Python blocks of a page as a user would type them into a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the page's Python blocks, each with the output that the page shows for it."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```(?:\n\nIt prints\n\n```text\n(.*?)```)?", text, re.DOTALL)


def run(code: str, folder: Path) -> tuple[str, str]:
    """Run a block. Returns its standard error and its standard output."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environ)
    return done.stderr, done.stdout
