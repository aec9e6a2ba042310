"""Three workers and one database, while workers are killed, stopped and cut off, and the server crashes.

Each effect happens once, or a person is asked about it because nobody knows whether it has happened. All runs end.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from albert_tools.store.record.verify import verify
from tests.helpers.postgres import server
from tests.surfaces.conftest import Albert, wait_until

STEPS = '''def steps(name: str, count: int) -> int:
    """Make some marks.

    Args:
        name: The name of the marks.
        count: How many.
    """
    for step in range(count):
        tools.mark(name=name, step=step)
        tools.sleep(seconds=0.2)
    return count
'''
RULES = "primitives_from: [tests.helpers.marks]\nallow: [mark, sleep]\n"


class Fleet:
    """Workers of one home."""

    def __init__(self, folder: Path) -> None:
        self.url = server().url()
        self.albert = Albert(folder)
        self.marks = folder / "marks"
        self.albert.environ |= {"ALBERT_HOME": self.url, "HOME": str(folder), "MARKS": str(self.marks)}
        self._numbers = count()
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def setup(self) -> None:
        """Write the rules and the tool."""
        for name, text in (("rules.yaml", RULES), ("steps.tool", STEPS)):
            self.albert.write(name, text)
        for words in (("policy", "import", "rules.yaml"), ("define", "steps.tool")):
            done = self.albert(*words)
            assert done.code == 0, done.err

    def start(self) -> str:
        """Start a worker. Returns its name."""
        name = f"w{next(self._numbers)}"
        words = ("worker", "--name", name, "--at-once", "2", "--quiet")
        self.workers[name] = self.albert.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return name

    def any(self, pick: random.Random) -> str:
        """The name of a worker that has started and runs."""
        found: list[str] = []

        def some() -> list[str]:
            workers = self.albert("worker", "list", "--json").document()["workers"]
            found[:] = [each["name"] for each in workers if each["alive"]]
            return found

        wait_until(some)
        return pick.choice(found)

    def made(self) -> Counter[str]:
        """How often each mark was made."""
        return Counter(self.marks.read_text().splitlines() if self.marks.exists() else [])

    def wait_for_more(self, more: int) -> None:
        """Wait until some more marks are made, or all runs have ended."""
        before = self.made().total()
        wait_until(lambda: self.made().total() >= before + more or not self.go_on())

    def go_on(self) -> int:
        """Answer the questions. Returns how many runs have not ended."""
        asked = self.albert("approvals", "--json").document()["approvals"]
        for each in asked:
            self.albert("approvals", "answer", each["approval"], "once")
        runs = self.albert("runs", "--limit", "1000", "--json").document()["runs"]
        return sum(run["state"] not in ("done", "failed", "cancelled") for run in runs)

    # What happens to workers

    def kill(self, name: str) -> None:
        """Kill a worker, and start another one."""
        self.workers[name].kill()
        self.workers[name].wait()
        self.start()

    def stop_and_evict(self, name: str) -> None:
        """A worker stands still, is evicted, and goes on after others have taken its runs."""
        os.kill(self.workers[name].pid, signal.SIGSTOP)
        try:
            done = self.albert("worker", "evict", name)
            assert done.code == 0, done.err
            self.wait_for_more(2)
        finally:
            os.kill(self.workers[name].pid, signal.SIGCONT)

    def cut_off(self, _: str) -> None:
        """The server ends all connections."""
        with closing(server().connect(self.url)) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'albert' AND pid <> pg_backend_pid()"
            )

    def crash(self, _: str) -> None:
        """The server crashes, and is started again."""
        server().stop("immediate")
        server().start()

    def close(self) -> None:
        for process in self.workers.values():
            process.kill()
            process.wait()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    made.setup()
    yield made
    made.close()


Attack = Callable[[Fleet, str], None]
ATTACKS: list[Attack] = [Fleet.kill, Fleet.stop_and_evict, Fleet.cut_off, Fleet.crash]


def check(fleet: Fleet, attacks: list[Attack], runs: int, steps: int, seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(3):
        fleet.start()
    for number in range(runs):
        done = fleet.albert("run", "--queue", "default", "steps", f"name=run{number}", f"count={steps}")
        assert done.code == 0, done.err
    for attack in attacks:
        fleet.wait_for_more(3)
        attack(fleet, fleet.any(pick))
    wait_until(lambda: not fleet.go_on())

    found = fleet.albert("runs", "--limit", "1000", "--json").document()["runs"]
    assert Counter(run["state"] for run in found) == {"done": runs}, [run["error"] for run in found if run["error"]]
    asked = Counter(
        f"{entry.data['arguments']['name']} {entry.data['arguments']['step']}"
        for entry in verified(fleet)
        if entry.kind == "asked"
    )
    made = fleet.made()
    assert made.keys() == {f"run{run} {step}" for run in range(runs) for step in range(steps)}
    # A mark is made again only after a person was asked whether it was made.
    assert not [name for name, times in made.items() if times > 1 + asked[name]], (made - asked, asked)


def verified(fleet: Fleet) -> Iterator[object]:
    from albert_tools.store.record.record import Record

    assert verify(fleet.url).ok
    with Record(fleet.url) as record:
        return iter(list(record.entries()))


def test_runs_survive_what_happens_to_workers(fleet: Fleet) -> None:
    check(fleet, ATTACKS, 6, 4, 1)


@pytest.mark.fleet
@pytest.mark.parametrize("seed", range(8))
def test_runs_survive_what_happens_to_workers_again_and_again(fleet: Fleet, seed: int) -> None:
    pick = random.Random(seed)
    check(fleet, [pick.choice(ATTACKS) for _ in range(10)], 30, 10, seed)
