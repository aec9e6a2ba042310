"""`kill -9` at every step of a program with ten effects. Another process resumes the run each time. Each effect happens once.

An effect adds a line to a file, so a second effect is visible. The program is killed at the points of
`tests.helpers.kill_points`: before and after every entry, sync and effect. The service can't know whether an interrupted
effect happened, so the run asks a person. The test is this person: it looks at the file and answers from its own process.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService
from albert_tools.store.record.verify import verify
from tests.helpers.children import Child, Report
from tests.helpers.kill_points import Place, Points, pointed

#: Two of the ten effects are in a saved tool that the program calls, and two are in `parallel`. The program reads
#: between them.
SOURCES = [
    '''
def two(first: str, second: str) -> list[str]:
    """Put two."""
    return [_one(first), _one(second)]

def _one(name: str) -> str:
    try:
        return tools.PUT(name=name)
    except ToolError as e:
        return name
''',
    '''
def ten() -> list[str]:
    """Put ten."""
    found = [_one(f"a{i}") for i in range(3)]
    print(tools.count() > 0)
    found = found + list(parallel(_one(name) for name in ["p0", "p1"]))
    found = found + tools.two(first="n0", second="n1")
    seen = parallel(tools.count(), tools.count())
    return found + [_one(f"z{i}") for i in range(3)]

def _one(name: str) -> str:
    try:
        return tools.PUT(name=name)
    except ToolError as e:
        return name
''',
]
TEN = ["a0", "a1", "a2", "p0", "p1", "n0", "n1", "z0", "z1", "z2"]
#: One effect in the middle of the ten asks.
ASKS = {"tools": {"two": {"requires_approval_in_modes": ["NORMAL"]}}}


def define(place: Place, put: str) -> None:
    with SyncToolService.open(**place.options()) as service:
        for source in SOURCES:
            service.define(source.replace("PUT", put))


def live(report: Report, base: Path, governance: Any, run: str | None, kill: tuple[str, int] | int | None) -> None:
    """Run the program or resume it. Die at a point, which is given by its number or by its name and count."""
    seen = 0

    def at(number: int, name: str, before: bool) -> None:
        nonlocal seen
        if isinstance(kill, tuple):
            seen += points.names[-1] == kill[0]
            due = seen == kill[1] and points.names[-1] == kill[0]
        else:
            due = number == kill
        if due:
            report(points.names[-1])
            os.kill(os.getpid(), signal.SIGKILL)

    points = Points(at)

    async def main() -> None:
        async with pointed(Place(base), points, governance=governance) as service:
            if run is None:
                result = await service.invoke("ten")
            elif service.runs.show(run).state == "done":
                # The process died after the end of the run, before it returned the result.
                result = await service.runs.replay(run)
            else:
                result = await service.resume(run)
            report((result.error.as_dict() if result.error else None, result.output, points.names))

    asyncio.run(main())


class Story:
    """One run of the program over all its deaths. `deaths` contains the points, `asked` the rules of the questions."""

    def __init__(self, place: Place, governance: Any = None) -> None:
        self.place, self.governance = place, governance
        self.run: str | None = None
        self.deaths: list[str] = []
        self.asked: list[str] = []
        self.names: list[str] = []
        self.output: Any = None

    def live(self, kill: Any = None) -> bool:
        """Run or resume the program in a separate process that is killed at a point. Returns whether the run has ended."""
        child = Child(live, self.place.base, self.governance, self.run, kill)
        *said, last = child.rest() or [None]
        code = child.wait()
        if code == -signal.SIGKILL:
            assert isinstance(last, str)
            self.deaths.append(last)
            self._find()
            return False
        assert code == 0, said
        error, self.output, names = last
        self.names += names
        self._find()
        if error is not None:
            assert error["code"] == "suspended", error
            self._answer(error["details"]["approval"])
        return error is None

    def _find(self) -> None:
        if self.run is not None:
            return
        with SyncToolService.open(**self.place.options(self.governance)) as service:
            runs = service.within(lambda s: s.runs.list())
            assert len(runs) <= 1
            if runs:
                assert runs[0].problem is None
                self.run = runs[0].id

    def _answer(self, question: str) -> None:
        with SyncToolService.open(**self.place.options(self.governance)) as service:
            asked = service.within(lambda s: s.approvals.get(question))
            self.asked.append(asked.rule)
            done = asked.rule == "interrupted" and asked.arguments["name"] in self.place.done
            service.within(lambda s: s.approvals.answer(question, "no" if done else "once", "who looked"))

    def to_its_end(self) -> None:
        """Resume the run until it ends, and check the result."""
        for _ in range(5):
            if self.live():
                break
        assert self.output == TEN, (self.deaths, self.output)
        assert self.place.done == TEN, self.deaths
        with SyncToolService.open(**self.place.options(self.governance)) as service:
            assert [run.state for run in service.within(lambda s: s.runs.list())] == ["done"]
            assert verify(service.service.ledger.place).ok


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_each_of_ten_effects(place: Place, when: str) -> None:
    define(place, "put")
    story = Story(place)
    while len(story.deaths) < 10:
        # Each process makes the effect that the previous process did not make, and dies at the next one.
        assert not story.live((f"{when} the effect of put", 2 if when == "before" and story.deaths else 1))
    story.to_its_end()
    assert len(story.deaths) == 10
    assert story.asked == ["interrupted"] * 10


def test_idempotent_calls_are_made_again_without_a_question(place: Place) -> None:
    define(place, "put_again")
    story = Story(place)
    for n in range(10):
        assert not story.live(("after the effect of put_again", 1 if n == 0 else 2))
    while not story.live():
        pass
    assert story.asked == []
    assert story.output == TEN
    # Each effect happens once before a death and once after it. Steps that have ended are never made again.
    assert place.done == [name for name in TEN for _ in range(2)]


def test_an_answer_from_another_process(place: Place) -> None:
    define(place, "put")
    story = Story(place, ASKS)
    assert not story.live(("after the effect of put", 4))
    assert not story.live()
    assert story.asked == ["interrupted"]
    assert not story.live()
    assert story.asked == ["interrupted", "tools.two.requires_approval_in_modes"]
    assert not story.live(("before the effect of put", 1))
    story.to_its_end()
    assert story.asked[2:] == ["interrupted"]


def points_of(tmp_path: Path) -> list[str]:
    whole = Story(Place(tmp_path / "whole"))
    define(whole.place, "put")
    whole.to_its_end()
    return whole.names


def killed_at(tmp_path: Path, numbers: list[int]) -> None:
    define(Place(tmp_path / "defined"), "put")
    for number in numbers:
        shutil.copytree(tmp_path / "defined", tmp_path / str(number))
        story = Story(Place(tmp_path / str(number)))
        story.live(number)
        assert len(story.deaths) == 1
        story.to_its_end()
        assert story.asked in ([], ["interrupted"])


def test_killed_between_entry_sync_and_effect(tmp_path: Path) -> None:
    names = points_of(tmp_path)
    # A sample; `make test-slow` tests all points.
    killed_at(tmp_path, sorted(random.Random(2).sample(range(1, len(names) + 1), 3)))


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_killed_at_every_point(tmp_path: Path) -> None:
    names = points_of(tmp_path)
    killed_at(tmp_path, list(range(1, len(names) + 1)))
