"""The page's blocks, as typed into a file of a folder of one's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "embedding.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\nIt prints\n\n```text\n(.*?)```)?", PAGE, re.DOTALL)


@pytest.mark.parametrize(("code", "printed"), BLOCKS, ids=range(len(BLOCKS)))
def test_block(code: str, printed: str, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environ)
    assert (done.stderr, done.stdout) == ("", printed)


def test_one_of_them_shows_what_it_prints() -> None:
    assert any(printed for _, printed in BLOCKS)
