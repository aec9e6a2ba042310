"""An owner is alive exactly as long as its process runs and has not closed its record."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.owner import Owners
from tests.helpers.children import Child, Parent, Report, forked, wait_for


def own_and_wait(report: Report, folder: Path) -> None:
    report(Owners(folder).own())
    time.sleep(600)


def test_an_owner_is_alive_until_its_process_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "processes"
    owners = Owners(folder)
    assert not owners.alive("0" * 16)
    assert not folder.exists()
    child = Child(own_and_wait, folder)
    owner = child.hear()
    assert owners.alive(owner)
    # A stopped process is alive.
    os.kill(child.pid, signal.SIGSTOP)
    assert owners.alive(owner)
    child.kill()
    assert not owners.alive(owner)
    own = owners.own()
    assert owners.own() == own
    assert owners.alive(own)
    assert os.listdir(folder) == [own]
    owners.close()
    owners.close()
    assert not Owners(folder).alive(own)
    assert os.listdir(folder) == []
    assert owners.own() != own


@pytest.mark.parametrize("bad", ["", "../../etc/passwd", "0" * 15, "0" * 16 + ".new", "0" * 16 + "\n"])
def test_an_invalid_owner_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(Failure) as caught:
        Owners(tmp_path).alive(bad)
    assert caught.value.code == "invalid_arguments"


def own_again_and_again(report: Report, folder: Path) -> None:
    """Become an owner, check that others see it, and stop. Each first `own` sweeps the files of all others."""
    other = Owners(folder)
    end = time.monotonic() + 1.0
    count = 0
    while time.monotonic() < end:
        owners = Owners(folder)
        name = owners.own()
        assert other.alive(name)
        if count % 2:
            owners.close()
            assert not other.alive(name)
        else:
            # As if the process had been killed. The file remains.
            owners._forked()
            assert not other.alive(name)
        count += 1
    report(count)


@pytest.mark.slow
def test_creating_examining_and_sweeping_do_not_disturb_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "processes"
    with Parent(own_and_wait) as parent:
        holder = parent.fork(folder)
        owner = holder.hear()
        children = [Child(own_again_and_again, folder) for _ in range(4)]
        owners = Owners(folder)
        while any(child.alive for child in children):
            assert owners.alive(owner)
        assert [child.wait() for child in children] == [0] * 4
        assert min(child.hear() for child in children) > 10
        holder.kill()
    assert not owners.alive(owner)


def test_threads_share_one_owner(tmp_path: Path) -> None:
    owners = Owners(tmp_path / "processes")
    found: set[str] = set()
    threads = [threading.Thread(target=lambda: found.add(owners.own())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {owners.own()}


def fork_and_close(report: Report, folder: Path) -> None:
    owners = Owners(folder)
    own = owners.own()
    go, ready = os.pipe(), os.pipe()

    def work() -> None:
        os.close(go[1])
        assert owners.own() != own
        assert owners.alive(own)
        os.write(ready[1], b"x")
        assert os.read(go[0], 1)
        assert not owners.alive(own)

    pid = forked(work)
    assert os.read(ready[0], 1)
    assert owners.alive(own)
    owners.close()
    assert not owners.alive(own)
    os.write(go[1], b"x")
    assert wait_for(pid) == 0
    # A child that lives on does not keep its killed parent's owner alive.
    own = owners.own()

    def live_on() -> None:
        os.write(ready[1], b"x")
        time.sleep(600)

    pid = forked(live_on)
    assert os.read(ready[0], 1)
    report((own, pid))
    time.sleep(600)


def test_a_forked_child_is_another_owner(tmp_path: Path) -> None:
    child = Child(fork_and_close, tmp_path / "processes")
    owner, grandchild = child.hear()
    owners = Owners(tmp_path / "processes")
    assert owners.alive(owner)
    child.kill()
    try:
        assert not owners.alive(owner)
    finally:
        os.kill(grandchild, signal.SIGKILL)
