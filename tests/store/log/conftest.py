"""Fixtures that the tests of the log share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from albert_tools.store.log.log import Log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a log. It does not exist yet."""
    return tmp_path / "log"


@pytest.fixture
def files(folder: Path) -> Callable[[], list[Path]]:
    """Return a function: `files()` lists the segment files, oldest first."""
    return lambda: sorted(folder.glob("*.log"))


@pytest.fixture
def one(folder: Path, files: Callable[[], list[Path]]) -> Path:
    """The only segment of a closed log. It contains a header, entries 1 to 6 and the closing entry 7."""
    with Log(folder) as log:
        for i in range(6):
            log.append("step", {"i": i, "text": "ä"})
    return files()[0]
