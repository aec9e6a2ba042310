"""Private folders on the disk. They are removed after a command, whatever the command did to them.

Folders that a killed service left behind are removed later.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.sandbox.command import temporary_folders
from albert_tools.engine.sandbox.command.temporary_folders import Temporary, sweep
from tests.helpers.attacked import SOMEBODY
from tests.helpers.children import Child


@pytest.fixture
def disk() -> Iterator[Path]:
    """The folder that contains such folders."""
    made = Path(tempfile.mkdtemp(prefix="albert-test-", dir="/tmp"))
    made.chmod(0o777)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def litter(report: Callable[[Any], None], disk: str, user: int) -> None:
    tempfile.tempdir = disk
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    made = Temporary()
    os.chdir(made.path)
    # Longer than any path, and deeper than Python's stack.
    for _ in range(1200):
        os.mkdir("deep")
        os.chdir("deep")
    os.chdir(made.path)
    os.makedirs("closed/below/that")
    (Path("closed") / "file").touch()
    os.symlink("/", "closed/link")
    os.chmod("closed/below", 0)
    os.chmod("closed", 0)
    made.remove()
    report(os.path.lexists(made.path))


@pytest.mark.parametrize("user", [0, SOMEBODY] if os.getuid() == 0 else [0])
def test_deep_and_closed_folders_are_removed(disk: Path, user: int) -> None:
    child = Child(litter, str(disk), user)
    assert list(child.rest()) == [False]
    assert child.wait() == 0
    assert os.listdir(disk) == []


def test_folders_of_a_killed_service_are_removed(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, young = disk / "albert-command-left", disk / "albert-command-young"
    (left / "home/x").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    in_use = Temporary()
    while time.time() <= left.stat().st_ctime or time.time() <= os.stat(in_use.path).st_ctime:
        time.sleep(0.001)
    between = time.time()
    young.mkdir()
    while young.stat().st_ctime <= between:
        # The clock of the file system may be some milliseconds behind.
        young.touch()
    # A minute after `left` was made, and less than a minute after `young` was made.
    monkeypatch.setattr(temporary_folders.time, "time", lambda: between + temporary_folders._YOUNG)
    sweep()
    assert not left.exists()
    assert young.exists()
    assert os.path.isdir(in_use.path)
    in_use.remove()
    assert os.listdir(disk) == ["albert-command-young"]
