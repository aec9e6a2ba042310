"""A workspace on disk, and a file outside it that tools must not read or change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from albert_tools.engine.workspace.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("inside")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("below")
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    return folder


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace(root) as opened:
        yield opened
