"""`kill -9` at any instant: what was reported saved is there, whole, and nothing else is harmed.

Two children at a time save without pause, to tools of their own and to one they share; after each save has
returned they report it on a pipe. Each is killed at a random instant, two hundred times in all. They are
forked from this process, which has everything imported, so that start-up isn't paid two hundred times.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from albert_tools.store import tools
from albert_tools.store.tools import TinyToolStore

KILLS = 200
#: Seconds of saving before a child is killed.
LIFE = (0.005, 0.05)
#: Tools of one child; few, so that their files also fill up and archive.
OWN = 3


def _reports(pipe: int) -> list[str]:
    content = b""
    while chunk := os.read(pipe, 65536):
        content += chunk
    os.close(pipe)
    return content.decode().split("\n")[:-1]


def test_nothing_reported_is_lost(tmp_path: Path, make, fork, monkeypatch) -> None:
    import tinydb  # noqa: F401 - warm, for the children

    monkeypatch.setattr(tools, "KEEP", 5)  # so that most saves archive too
    folder = tmp_path / "tools"
    chance = random.Random(9)

    def start(child: int, life: int) -> tuple[int, int, float, int]:
        read, write = os.pipe()

        def work() -> None:
            os.close(read)
            store = TinyToolStore(folder)
            os.write(write, b"ready\n")
            i = 0
            while True:
                name = "shared" if i % 4 == 3 else f"own{child}{i % OWN}"
                store.save(make(name, f"{child}.{life}.{i}"))
                os.write(write, f"{name} {child}.{life}.{i}\n".encode())
                i += 1

        pid = fork(work)
        os.close(write)
        assert os.read(read, 6) == b"ready\n"
        return pid, read, time.monotonic() + chance.uniform(*LIFE), life

    saved: list[tuple[str, str]] = []
    alive = [start(0, 0), start(1, 0)]
    for killed in range(KILLS):
        child = min((0, 1), key=lambda c: alive[c][2])
        pid, pipe, deadline, life = alive[child]
        time.sleep(max(0.0, deadline - time.monotonic()))
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        mine = [(name, text) for name, text in (line.split(" ") for line in _reports(pipe))]
        saved += mine
        # Its own tools are written by nobody else: the newest is the last one reported, or the one under way.
        store = TinyToolStore(folder)
        under_way = f"{child}.{life}.{len(mine)}"
        for name, text in {name: text for name, text in mine if name != "shared"}.items():
            assert store.load(name) in (make(name, text), make(name, under_way))
        if killed < KILLS - 2:
            alive[child] = start(child, killed + 1)
        else:
            alive[child] = (0, 0, float("inf"), 0)

    assert len(saved) > KILLS // 4  # they did save, however slow the machine
    store = TinyToolStore(folder, tmp_path / "cache")
    for name, text in saved:
        version = make(name, text)
        assert store.load(name, version.version) == version
    listed = store.list()
    assert {s.name for s in listed} == {name for name, _ in saved}
    assert [s.problem for s in listed] == [None] * len(listed)
    for summary in listed:
        reported = sum(1 for name, _ in saved if name == summary.name)
        assert reported <= summary.versions <= reported + KILLS
        # Whatever was under way when a writer died holds nobody up, and its leftovers are swept.
        store.save(make(summary.name, "after"))
        assert store.load(summary.name) == make(summary.name, "after")
    assert not list(folder.glob("*/.new-*"))
    assert not list(folder.glob("*/*.damaged-*"))
