"""Three workers and one database, while workers are killed, stopped and cut off, and the server crashes or its disk is full.

Each effect happens once, or a person is asked about it because nobody knows whether it has happened. All runs end.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.record import Record
from albert_tools.store.record.verify import verify
from tests.helpers.cables import ADDRESS, Switch, missing
from tests.helpers.postgres import Server, server
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
#: A lost machine is noticed after four seconds.
NETWORK = "connect_timeout=2&keepalives_idle=2&keepalives_interval=1&keepalives_count=2&tcp_user_timeout=4000"


class Fleet:
    """Workers of one home. With a `switch`, each is on a machine of its own."""

    def __init__(self, folder: Path, server: Server, switch: Switch | None = None) -> None:
        self.server, self._switch = server, switch
        self.url = server.url()
        self.albert = Albert(folder)
        self.marks = folder / "marks"
        self.albert.environ |= {"ALBERT_HOME": self.url, "HOME": str(folder), "MARKS": str(self.marks)}
        self._numbers = count()
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._cables: dict[str, str] = {}

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
        if self._switch is None:
            self.workers[name] = self.albert.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return name
        url = self.url.replace(f"host={self.server.folder}", f"host={ADDRESS}&{NETWORK}")
        environ = {**self.albert.environ, "ALBERT_HOME": url}
        command = [*self.albert.command, *words]
        self.workers[name], self._cables[name] = self._switch.start(command, cwd=self.albert.project, env=environ)
        return name

    def is_alive(self, name: str) -> bool:
        """Whether the server has the connection of a worker."""
        return name in self._alive()

    def _alive(self) -> list[str]:
        workers = self.albert("worker", "list", "--json").document()["workers"]
        return [each["name"] for each in workers if each["alive"]]

    def any(self, pick: random.Random) -> str:
        """The name of a worker that has started and runs."""
        wait_until(self._alive)
        return pick.choice(self._alive())

    def made(self) -> Counter[str]:
        """How often each mark was made."""
        return Counter(self.marks.read_text().splitlines() if self.marks.exists() else [])

    def wait_for_more(self, more: int) -> None:
        """Wait until some more marks are made, or all runs have ended."""
        before = self.made().total()
        wait_until(lambda: self.made().total() >= before + more or not self.go_on())

    def go_on(self) -> int:
        """Do what a person does: replace workers that have ended, answer the questions, and resume a run that has cost too many
        workers. Returns how many runs have not ended."""
        for name in [name for name, process in self.workers.items() if process.poll() is not None]:
            del self.workers[name]
            self.start()
        asked = self.albert("approvals", "--json").document()["approvals"]
        for each in asked:
            self.albert("approvals", "answer", each["approval"], "once")
        for each in self.albert("fleet", "status", "--json").document()["stuck"]:
            if "workers have died of it" in each["why"]:
                self.albert("runs", "resume", each["run"])
        runs = self.albert("runs", "--limit", "1000", "--json").document()["runs"]
        return sum(run["state"] not in ("done", "failed", "cancelled") for run in runs)

    def finish(self) -> None:
        """Wait until all runs have ended. However long they take together, each time something must happen soon."""
        while left := self.go_on():
            made = self.made().total()
            wait_until(lambda left=left, made=made: self.go_on() < left or self.made().total() > made)

    # What happens to workers

    def kill(self, name: str) -> None:
        """Kill a worker."""
        self.workers[name].kill()
        self.workers[name].wait()

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
        with closing(self.server.connect(self.url)) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'albert' AND pid <> pg_backend_pid()"
            )

    def crash(self, _: str) -> None:
        """The server crashes, and is started again."""
        self.server.stop("immediate")
        self.server.start()

    def lose_machine(self, name: str) -> None:
        """A machine is lost with its worker, and the server is told nothing."""
        self._pull_out(name)
        self.kill(name)
        wait_until(lambda: not self.is_alive(name))

    def cut_network(self, name: str) -> None:
        """A worker can't reach the server, until others have taken its runs."""
        self._pull_out(name)
        wait_until(lambda: not self.is_alive(name))
        self.wait_for_more(2)
        self._plug_in(name)

    def evict_unreachable(self, name: str) -> None:
        """The same, without the time that the server needs to notice it."""
        self._pull_out(name)
        done = self.albert("worker", "evict", name)
        assert done.code == 0, done.err
        assert not self.is_alive(name)
        self.wait_for_more(2)
        self._plug_in(name)

    def _pull_out(self, name: str) -> None:
        assert self._switch is not None
        self._switch.pull_out(self._cables[name])

    def _plug_in(self, name: str) -> None:
        assert self._switch is not None
        self._switch.plug_in(self._cables[name])

    def fill_disk(self, _: str) -> None:
        """The server's disk is full: at first for tables, then for the write-ahead log, too, so that the server ends."""
        with closing(self.server.connect(self.url)) as connection, suppress(psycopg.OperationalError):
            # A new file of the log has room for what is written until the tables are full.
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("CHECKPOINT")
            self.server.resize_disk(0)
            with Record(self.url) as record, pytest.raises(Failure, match="could not extend file") as caught:
                fill(record)
            assert caught.value.hint == "free some space on the server's disk and try again"
            while True:
                connection.execute("SELECT pg_logical_emit_message(false, '', repeat('x', 1000000))")
        wait_until(lambda: not self.server.runs)
        denied = self.albert("run", "steps", "name=denied", "count=1")
        assert "can't use the database" in denied.err, denied
        self.server.resize_disk()
        self.server.start()

    def close(self) -> None:
        for process in self.workers.values():
            process.kill()
            process.wait()


def fill(record: Record) -> None:
    """Append entries until one fails."""
    while True:
        record.append("note", {"x": os.urandom(20_000).hex()})


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with closing(Fleet(tmp_path, server())) as made:
        made.setup()
        yield made


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet whose workers are on machines of their own, as is the server."""
    if missing():
        pytest.skip(missing())
    with (
        closing(Switch()) as switch,
        closing(Server(switch)) as server,
        closing(Fleet(tmp_path, server, switch)) as made,
    ):
        made.setup()
        yield made


Attack = Callable[[Fleet, str], None]
ATTACKS: list[Attack] = [Fleet.kill, Fleet.stop_and_evict, Fleet.cut_off, Fleet.crash]
#: The attacks on machines, and on the server's disk.
AS_ROOT: list[Attack] = [Fleet.lose_machine, Fleet.cut_network, Fleet.evict_unreachable, Fleet.fill_disk]


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
    fleet.finish()

    found = fleet.albert("runs", "--limit", "1000", "--json").document()["runs"]
    assert len(found) == runs
    expected = {
        f"{run['arguments']['name']} {step}" for run in found for step in range(steps_made(run, attacks, steps))
    }
    asked = Counter(
        f"{entry.data['arguments']['name']} {entry.data['arguments']['step']}"
        for entry in verified(fleet)
        if entry.kind == "asked"
    )
    made = fleet.made()
    assert made.keys() == expected
    # A mark is made again only after a person was asked whether it was made.
    assert not [name for name, times in made.items() if times > 1 + asked[name]], (made - asked, asked)


def steps_made(run: dict[str, Any], attacks: list[Attack], steps: int) -> int:
    """How many steps a run has made. It is done, unless a call was denied because the disk was full."""
    if run["state"] == "done":
        return steps
    error = run["error"]
    assert (run["state"], error["code"]) == ("failed", "governance_unavailable"), error
    assert Fleet.fill_disk in attacks
    assert "could not extend file" in error["message"]
    assert error["details"]["unknown"] == []
    return int(error["details"]["applied"])


def verified(fleet: Fleet) -> Iterator[object]:
    assert verify(fleet.url).ok
    with Record(fleet.url) as record:
        return iter(list(record.entries()))


@pytest.mark.fleet
def test_runs_survive_what_happens_to_workers(fleet: Fleet) -> None:
    check(fleet, ATTACKS, 6, 4, 1)


@pytest.mark.fleet
def test_runs_survive_what_happens_to_machines(machines: Fleet) -> None:
    check(machines, AS_ROOT, 6, 5, 1)


@pytest.mark.fleet
@pytest.mark.parametrize("seed", range(8))
def test_runs_survive_what_happens_to_workers_again_and_again(fleet: Fleet, seed: int) -> None:
    again_and_again(fleet, ATTACKS, seed)


@pytest.mark.fleet
@pytest.mark.parametrize("seed", range(8))
def test_runs_survive_what_happens_to_machines_again_and_again(machines: Fleet, seed: int) -> None:
    again_and_again(machines, ATTACKS + AS_ROOT, seed)


def again_and_again(fleet: Fleet, attacks: list[Attack], seed: int) -> None:
    pick = random.Random(seed)
    check(fleet, [pick.choice(attacks) for _ in range(10)], 30, 10, seed)
