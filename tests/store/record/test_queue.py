"""The queues: which run a worker takes next. The limits hold in all processes, and a run is never executed twice at once."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from albert_tools.engine.authority.rate_limit import RateLimits
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.settings import QueueRules
from albert_tools.engine.runs.run_queue import RunQueue
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.record.verify import verify
from tests.helpers.begun_runs import begun
from tests.helpers.children import Child, Report
from tests.helpers.gate import until
from tests.store.record.conftest import Place

FREE = {"q": QueueRules(), "other": QueueRules()}
HEADER = {"queue": "q"}


@pytest.fixture
def record(place: Place) -> Iterator[Record]:
    with Record(place) as opened:
        yield opened


def queue_of(record: Record, rules: Mapping[str, QueueRules] = FREE) -> RunQueue:
    return RunQueue(record, RateLimits(record), lambda: rules)


def put(
    record: Record, queue: str = "q", priority: int = 100, workspace: str = "/w", run: str = "", session: str = ""
) -> str:
    """Queue a run, and return its id."""
    run = run or os.urandom(8).hex()
    with record.transaction():
        begun(Runs(record), run, HEADER | ({"session": session} if session else {}))
        record.append("queued", {"run": run, "queue": queue, "priority": priority, "workspace": workspace})
    record.journals.clear()
    return run


def taken(
    queue: RunQueue, queues: tuple[str, ...] = ("q", "other"), workspaces: tuple[str, ...] = ("/w",)
) -> str | None:
    return queue.take("worker", queues, workspaces)


def end(record: Record, run: str, state: str = "done", **facts: str) -> None:
    record.append("run", {"run": run, "state": state, "queue": "q", **facts})


def test_the_lowest_priority_and_then_the_oldest_is_first(record: Record) -> None:
    late, first, second, urgent = put(record, priority=200), put(record), put(record), put(record, priority=1)
    queue = queue_of(record)
    assert [taken(queue) for _ in range(5)] == [urgent, first, second, late, None]


def test_sessions_take_turns(record: Record) -> None:
    for name, parent in (("one", ""), ("within", "one"), ("deeper", "within"), ("other", ""), ("late", "")):
        record.append("session", {"session": name, "hash": name, "parent": parent})
    ones = [put(record, session=name) for name in ("within", "one", "deeper", "one")]
    others, owners = [put(record, session="other") for _ in range(2)], [put(record) for _ in range(2)]
    urgent, last = put(record, session="one", priority=1), put(record, session="late", priority=200)
    queue = queue_of(record)
    assert [taken(queue) for _ in range(4)] == [urgent, others[0], owners[0], ones[0]]
    # Also if no run of the session is executed at the moment.
    end(record, ones[0])
    assert [taken(queue) for _ in range(7)] == [others[1], owners[1], *ones[1:], last, None]


def test_a_look_reads_one_ready_run_of_each_session(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        record.append("session", {"session": name, "hash": name, "parent": ""})
    runs = [put(record, session=name) for name in ("one", "other") for _ in range(5)]
    found: list[Any] = []
    rows = record.database.rows
    monkeypatch.setattr(record.database, "rows", lambda *query: found.append(rows(*query)) or found[-1])
    assert taken(queue_of(record)) == runs[0]
    assert max(map(len, found)) == 2


def test_a_worker_takes_runs_of_its_queues_and_workspaces(record: Record) -> None:
    queue = queue_of(record)
    put(record, workspace="/elsewhere")
    other = put(record, queue="other")
    assert taken(queue, ("q",)) is None
    assert taken(queue, ("other",), ("/nowhere",)) is None
    assert taken(queue, ()) is None
    assert taken(queue) == other


def test_a_queue_without_rules_is_not_served(record: Record) -> None:
    put(record)
    assert taken(queue_of(record, {"other": QueueRules()})) is None


def test_a_run_that_has_begun_needs_its_interpreter(record: Record) -> None:
    run = put(record)
    assert taken(queue_of(record)) == run
    Runs(record).open(run, "Python 2.7 on vax").close()
    assert taken(queue_of(record)) is None
    (waiting,) = queue_of(record).all()
    assert (waiting.state, waiting.needs) == ("interrupted", "Python 2.7 on vax")


def test_a_suspended_run_is_ready_when_its_question_is_answered(record: Record) -> None:
    run, queue = put(record), queue_of(record)
    assert taken(queue) == run
    asked = {"approval": "a1", "action": "x", "run": run, "step": "0"}
    record.append("asked", asked)
    end(record, run, "suspended", approval="a1")
    assert [each.state for each in queue.all()] == ["suspended"]
    assert taken(queue) is None
    record.append("answered", {"approval": "a1", "choice": "once", "by": "ada"})
    assert [each.state for each in queue.all()] == ["answered"]
    assert taken(queue) == run


def test_an_ended_run_leaves_its_queue(record: Record) -> None:
    for state in ("done", "failed", "cancelled"):
        run = put(record)
        assert taken(queue_of(record)) == run
        end(record, run, state)
    assert queue_of(record).all() == []


def test_the_last_failures_of_queued_runs(record: Record) -> None:
    first, second, done, _ = (put(record) for _ in range(4))
    for run, state in ((second, "failed"), (done, "done"), (first, "failed")):
        end(record, run, state)
    begun(Runs(record), "a" * 16, {})
    record.append("run", {"run": "a" * 16, "state": "failed"})
    queue = queue_of(record)
    assert (queue.failed(9), queue.failed(1)) == ([first, second], [first])
    assert record.queue.failed(9, 4) == [second]


def test_limits_of_a_queue(record: Record) -> None:
    for _ in range(4):
        put(record)
    at_once = queue_of(record, {"q": QueueRules(at_once=2)})
    first = taken(at_once)
    assert taken(at_once)
    assert taken(at_once) is None
    end(record, str(first))
    assert taken(at_once)
    hourly = queue_of(record, {"q": QueueRules(per_hour=1)})
    assert taken(hourly)
    put(record)
    assert taken(hourly) is None
    # A full queue holds up no other.
    other = put(record, queue="other")
    assert taken(queue_of(record, {"q": QueueRules(at_once=1), "other": QueueRules()})) == other


def take_and_die(report: Report, place: Place) -> None:
    with Record(place) as record:
        report(taken(queue_of(record)))
        os._exit(9)


def wait_for_the_end(child: Child, record: Record) -> None:
    """Wait until the child has ended, and the record knows that. A server needs a moment to notice it."""
    child.wait()
    until(lambda: [each.state for each in queue_of(record).all()] == ["interrupted"])


def test_the_runs_of_a_dead_worker_are_ready_again_but_not_for_ever(place: Place, record: Record) -> None:
    run = put(record)
    for _ in range(5):
        child = Child(take_and_die, place)
        assert child.hear() == run
        wait_for_the_end(child, record)
    # It has ended five workers.
    assert taken(queue_of(record)) is None
    assert queue_of(record, {"q": QueueRules(at_once=1)})._has_room("q", QueueRules(at_once=1))


def take_all(report: Report, place: Place, name: str) -> None:
    with Record(place) as record:
        queue = queue_of(record, {"q": QueueRules(at_once=30)})
        found = []
        while (run := queue.take(name, ("q",), ("/w",))) is not None:
            found.append(run)
        report(found)
        # It lives until all have counted.
        time.sleep(60)


def test_processes_that_race_take_each_run_once_and_keep_the_limit(place: Place, record: Record) -> None:
    for _ in range(40):
        put(record)
    children = [Child(take_all, place, f"w{n}") for n in range(4)]
    runs = Counter(run for child in children for run in child.hear())
    for child in children:
        child.kill()
    assert len(runs) == 30
    assert set(runs.values()) == {1}
    assert verify(place).ok


def test_names_of_workers_are_theirs(place: Place, record: Record) -> None:
    queue = queue_of(record)
    queue.join("ada", {"queues": ["q"]})
    with Record(place) as another, pytest.raises(Failure, match="a worker named ada runs already"):
        queue_of(another).join("ada", {})
    with Record(place) as another:
        queue_of(another).join("ben", {})
    # A server needs a moment to notice the end of a connection.
    until(lambda: [(each.name, each.is_alive) for each in queue.workers()] == [("ada", True), ("ben", False)])
    queue.join("eve", {})
    assert [each.name for each in queue.workers()] == ["ada", "eve"]
    queue.leave("ada")
    assert [each.name for each in queue.workers()] == ["eve"]
    assert verify(place).ok


def test_a_run_that_was_cancelled_when_its_worker_died_is_taken_to_end_it(place: Place, record: Record) -> None:
    run = put(record)
    child = Child(take_and_die, place)
    assert child.hear() == run
    wait_for_the_end(child, record)
    Runs(record).cancel(run)
    assert taken(queue_of(record)) == run


def test_a_run_whose_end_was_not_recorded_is_put_back(place: Place, record: Record) -> None:
    first, second = put(record), put(record)
    queue = queue_of(record)
    with Record(place) as another:
        assert taken(queue_of(another)) == first
        assert taken(queue) == second
        queue.release_all_but([second])
        assert [each.state for each in queue.all()] == ["running", "running"]
        queue.release_all_but([])
        assert [each.state for each in queue.all()] == ["running", "interrupted"]
