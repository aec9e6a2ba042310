"""Blocks of a page, as typed into a file of a folder of one's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[tuple[str, str]]:
    """The page's blocks of Python, each with what the page says that it prints."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```(?:\n\nIt prints\n\n```text\n(.*?)```)?", text, re.DOTALL)


def run(code: str, folder: Path) -> tuple[str, str]:
    """What a block says on standard error, and what it prints."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environ)
    return done.stderr, done.stdout
