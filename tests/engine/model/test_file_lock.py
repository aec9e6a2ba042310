"""Locks on files: exclusive or shared, released by the kernel or explicitly, and never waited for longer than is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from albert_tools.engine.model.file_lock import lock, open_lock, open_locked, release

_HOLD = """
import sys
from pathlib import Path
from albert_tools.engine.model.file_lock import open_locked
open_locked(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        with pytest.raises(BlockingIOError):
            open_locked(path)
        child.send_signal(signal.SIGKILL)
    release(open_locked(path))


def test_shared_locks_exclude_only_exclusive_ones(tmp_path: Path) -> None:
    handles = [open_lock(tmp_path / "lock") for _ in range(3)]
    lock(handles[0], shared=True)
    lock(handles[1], shared=True)
    with pytest.raises(BlockingIOError):
        lock(handles[2], 0.01)
    release(handles[0])
    release(handles[1])
    lock(handles[2])
    release(handles[2])


def test_a_released_lock_is_free_although_a_forked_child_has_the_file(tmp_path: Path) -> None:
    handle = open_locked(tmp_path / "lock")
    inherited = os.dup(handle)  # as in a child: another descriptor of the same open file
    release(handle)
    release(open_locked(tmp_path / "lock"))
    os.close(inherited)


def test_a_refused_lock_leaves_no_descriptor_open(tmp_path: Path) -> None:
    held = open_locked(tmp_path / "lock")
    before = os.listdir("/dev/fd")
    with pytest.raises(BlockingIOError):
        open_locked(tmp_path / "lock")
    assert os.listdir("/dev/fd") == before
    release(held)


def test_a_lock_file_is_private_and_no_link_is_followed(tmp_path: Path) -> None:
    os.close(open_lock(tmp_path / "lock"))
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(OSError, match="link"):
        open_lock(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()
