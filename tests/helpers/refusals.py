"""Helpers for tests of refused calls: the failure that a call raises, and the state of a folder before and after the call."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure


def snapshot(folder: Path) -> dict[str, Any]:
    """Return every name under `folder`: a link with its target, a file with its inode number and its content."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            found[str(path)] = os.readlink(path)
        else:
            found[str(path)] = (facts.st_ino, path.read_bytes() if stat.S_ISREG(facts.st_mode) else facts.st_mode)
    return found


def refused(call: Callable[[], object]) -> tuple[str, str | None]:
    """Return code and rule of the failure that `call` must raise."""
    with pytest.raises(Failure) as caught:
        call()
    return caught.value.code, caught.value.rule
