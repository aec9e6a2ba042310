"""Requests under crashes, delays and failures at every numbered point. Each seed gives one sequence of events, a story.

A story makes a few requests. Some run at once, some in a session, some under a key. At the points of
`tests.helpers.kill_points` the story lets time pass, makes a part fail, or ends the service as `kill -9` would: nothing more
is written, and buffered entries are lost. Then another service in the same home resumes the interrupted and suspended runs,
and the requests under keys are sent again. A person answers questions, and first checks whether an interrupted call was made.
At the end of each story:

* each effect has a permitting decision before it, on the disk;
* each request has one result, unless the service crashed;
* no effect happens twice, except an interrupted idempotent one, and a step that has ended is never made again;
* nobody is asked about an effect whose primitive can find out what happened;
* an approval is used once, and a denied call has no effect;
* the ledger verifies, and every journal can be read.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from albert_tools import SyncToolService, ToolResult
from albert_tools.engine import service as engine
from albert_tools.engine.authority.authorization import Question
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.record.verify import verify
from tests.helpers.kill_points import Place, PointedLedger, Points, pointed

#: The number of stories in the default run, and in the long run.
FEW, MANY = 30, 5000
#: The number of services in a story, one after the other. The last ones have no faults.
LIVES, QUIET = 14, 8

SOURCES = [
    '''
def pair(tag: str) -> list[str]:
    """Put two."""
    return [tools.put(name=tag + ".n0"), tools.put_again(name=tag + ".n1")]
''',
    '''
def story(tag: str) -> list[str]:
    """Put some, read between, continue after a failure."""
    found = [tools.put(name=tag + ".0")]
    print(tools.count())
    found = found + tools.pair(tag=tag)
    seen = parallel(tools.count(), tools.count())
    found = found + list(parallel(_one(tag + f".p{i}") for i in range(2)))
    found = found + [tools.put_known(name=tag + ".k")]
    return found + [tools.put_again(name=tag + ".9")]

def _one(name: str) -> str:
    try:
        return tools.put(name=name)
    except ToolError as e:
        return e.code
''',
]
RULES: list[dict[str, Any]] = [
    {},
    {"tools": {"put": {"requires_approval_in_modes": ["NORMAL"]}}},
    {"tools": {"pair": {"requires_approval_in_modes": ["NORMAL"]}}},
    {"tools": {"put_again": {"requires_approval_in_modes": ["NORMAL"]}, "put": {"rate_limit_per_hour": 4}}},
    {"tools": {"story": {"requires_approval_in_modes": ["NORMAL"]}, "put": {"forbidden_in_modes": ["NORMAL"]}}},
]


class Crash(BaseException):
    """The end of the process. No handler catches it."""


class Life:
    """One service, until it is closed or crashes."""

    def __init__(self, story: Story, faults: bool) -> None:
        self.story, self.chance = story, story.chance
        self.rates = (0.012, 0.02, 0.15) if faults else (0.0, 0.0, 0.0)
        self.dead = asyncio.Event()
        self.broken: set[str] = set()
        self.points = Points(self._at, self._pause, self._effect)
        ask = self._ask if self.chance.random() < 0.5 else None
        self.service = pointed(story.place, self.points, story.sandbox, governance=story.rules, ask=ask)
        ledger = self.service.ledger
        assert isinstance(ledger, PointedLedger)
        self.ledger = ledger

    def _at(self, number: int, name: str, before: bool) -> None:
        crash, fail, _ = self.rates
        if self.dead.is_set():
            raise Crash
        if self.chance.random() < crash:
            self.story.crashes.append(self.points.names[-1])
            self.dead.set()
            raise Crash
        if not before:
            return
        if name.startswith("the journal's") and "journal" in self.broken:
            raise Failure("io_error", "the disk failed before")
        if self.chance.random() < fail and not name.startswith("the effect"):
            self.story.failures.append(name)
            if name.startswith(("the judging", "the telling", "the asking")):
                raise RuntimeError(f"{name} went wrong")
            if name.startswith("the journal's"):
                self.broken.add("journal")
            raise Failure("io_error", f"{name} failed")

    async def _pause(self) -> None:
        if self.chance.random() < self.rates[2]:
            await asyncio.sleep(self.chance.random() * 0.003)

    def _effect(self, key: str, name: str) -> None:
        # The violation is recorded here, because a program could catch an exception.
        run, _, step = key.partition(":")
        position, decision = self.ledger.decisions.get(key if step else run, (0, {}))
        if not decision:
            self.story.wrong.append(f"{name} was never decided on")
        elif position > self.ledger.durable_to:
            self.story.wrong.append(f"the decision on {name} isn't on the disk")
        elif decision["verdict"] != "allow" and not decision.get("approval"):
            self.story.wrong.append(f"{name} was not permitted: {decision}")

    async def _ask(self, question: Question) -> Any:
        self.points.before("the asking")
        await self.points.pause()
        return self.choice(question.decision.rule, question.arguments, question.choices)

    def choice(self, rule: str, arguments: Any, choices: Sequence[Any]) -> Any:
        """The answer of a person, who first checks whether an interrupted call was made."""
        if rule == "interrupted":
            if arguments["name"].endswith(".k"):
                self.story.wrong.append(f"a person was asked about {arguments['name']}")
            return "no" if arguments["name"] in self.story.place.done else "once"
        return self.chance.choice(["once", *choices])

    async def do(self, *work: Any) -> list[ToolResult | BaseException | None]:
        """Run all of `work` at once. Returns the results, with None where the service crashed."""
        tasks = [asyncio.ensure_future(each) for each in work]
        dead = asyncio.ensure_future(self.dead.wait())
        whole = asyncio.gather(*tasks, return_exceptions=True)
        # This takes milliseconds, but a busy machine can be a thousand times slower.
        done, _ = await asyncio.wait({dead, whole}, timeout=120, return_when=asyncio.FIRST_COMPLETED)
        assert done, f"it waits for ever: {[t.get_stack() for t in tasks if not t.done()]}"
        if self.dead.is_set():
            await self._die(tasks)
        dead.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        return [None if isinstance(r, (Crash, asyncio.CancelledError)) else r for r in results]

    async def _die(self, tasks: list[asyncio.Task[Any]]) -> None:
        """Release all resources, as the kernel does when a process dies."""
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=10)
        await asyncio.sleep(0)
        self.ledger.real.close()  # The steps that are only buffered are lost.

    async def end(self) -> None:
        """Close the service, unless it has crashed."""
        if self.service.running._watching is not None:
            self.service.running._watching.cancel()
        if not self.dead.is_set():
            self.ledger.real.close()
        # A process that dies leaves no handle open either.
        self.service.workspace.close()


class Story:
    """The sequence of events of one seed."""

    def __init__(self, seed: int, place: Place, sandbox: Sandbox) -> None:
        self.chance = random.Random(seed)
        self.place, self.sandbox = place, sandbox
        self.rules = self.chance.choice(RULES)
        self.crashes: list[str] = []
        self.failures: list[str] = []
        self.wrong: list[str] = []
        #: For each step that has ended: how often its effect had happened by then.
        self.ended: dict[str, int] = {}
        self.denied: set[str] = set()

    async def go(self) -> None:
        """Run the story, and check the result."""
        requests = [self._request(i) for i in range(self.chance.randint(1, 3))]
        in_session, token = self.chance.random() < 0.5, None
        for number in range(LIVES):
            life = Life(self, number < LIVES - QUIET)
            if in_session and token is None:
                quiet, life.rates = life.rates, (0.0, 0.0, 0.0)
                _, token = life.service.open_session("a story")
                life.rates = quiet
            await self._one_life(life, requests, token, first=number == 0)
            over = not life.dead.is_set() and not self._unfinished(life.service)
            await life.end()
            self._remember()
            if over and number >= 3:
                break
        self._see()

    def _request(self, number: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
        name = self.chance.choice(["story", "story", "pair", "put", "put_again"])
        key = {"dedupe_key": f"k{number}"} if self.chance.random() < 0.6 else {}
        tag = f"r{number}"
        return name, {"tag": tag} if name in ("story", "pair") else {"name": tag}, key

    async def _one_life(self, life: Life, requests: list[Any], token: str | None, first: bool) -> None:
        service = life.service
        if not first:
            for run in self._unfinished(service):
                if not life.dead.is_set():
                    await self._resumed(life, run)
        # Only requests under a key are sent again.
        again = [r for r in requests if first or "dedupe_key" in r[2]]
        if again and not life.dead.is_set():
            results = await life.do(*(service.invoke(n, a, **k, session=token) for n, a, k in again))
            for (name, arguments, key), result in zip(again, results, strict=True):
                assert result is not None or life.dead.is_set()
                assert result is None or isinstance(result, ToolResult), repr(result)
                if result is not None and result.error is not None and result.error.denied:
                    if name == "put" and not key:
                        self.denied.add(arguments["name"])

    @staticmethod
    def _unfinished(service: engine.ToolService) -> list[str]:
        found = service.runs.list()
        assert [run.problem for run in found] == [None] * len(found)
        return [run.id for run in found if run.state in ("suspended", "interrupted")]

    async def _resumed(self, life: Life, run: str) -> None:
        """Answer the open question of a run, if there is one, and resume it."""
        quiet, life.rates = life.rates, (0.0, 0.0, 0.0)
        desk = life.service.approvals
        for question in desk.all(("open",)):
            if question.run == run:
                desk.answer(question.id, life.choice(question.rule, question.arguments, question.choices), "elsewhere")
        life.rates = quiet
        (result,) = await life.do(life.service.resume(run))
        if isinstance(result, Failure):
            assert result.code in ("io_error", "exists"), result
        else:
            assert result is None or isinstance(result, ToolResult), repr(result)

    def _remember(self) -> None:
        """Record the steps that have ended, and how often their effects happened."""
        done = Counter(self.place.done)
        for run in self._journals():
            for entry in run.entries:
                if entry["t"] == "begin":
                    names = entry["arguments"]
                elif entry["t"] == "end" and "value" in entry and entry["effects"] and "name" in names:
                    self.ended.setdefault(names["name"], done[names["name"]])

    def _journals(self) -> list[Any]:
        with Record(self._folder()) as record:
            store = Runs(record)
            return [store.load(run.id) for run in store.list(1000)]

    def _folder(self) -> Path:
        return next(p for p in self.place.home.rglob("record") if p.is_dir())

    def _see(self) -> None:
        assert not self.wrong, self.wrong
        done = Counter(self.place.done)
        for name, times in done.items():
            idempotent = name.endswith((".9", ".n1")) or name in self._again()
            assert times <= (1 + len(self.crashes) + len(self.failures) if idempotent else 1), (name, times)
        for name, times in self.ended.items():
            assert done[name] == times, f"{name} had been done, and was done again"
        assert not self.denied & set(done)
        assert verify(self._folder()).ok, verify(self._folder()).problems
        with Record(self._folder()) as record:
            entries = list(record.entries())
        used = Counter(e.data["approval"] for e in entries if e.kind == "approval_used")
        assert set(used.values()) <= {1}, used
        answers = {e.data["approval"]: e.data["choice"] for e in reversed(entries) if e.kind == "answered"}
        for entry in entries:
            if entry.kind == "call" and entry.data["verdict"] == "ask":
                choice = answers[entry.data["approval"]]
                assert choice in ("session", "always") or used[entry.data["approval"]] == 1, entry
                assert choice != "no"
            assert entry.kind != "call" or entry.data["verdict"] != "deny"
        states = [run.entries[-1] for run in self._journals() if run.entries]
        assert not any(run.held for run in self._journals())
        assert all(s["t"] == "state" for s in states), "a run has no end"

    def _again(self) -> set[str]:
        return {f"r{i}" for i in range(3)}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the tools in it."""
    place = Place(tmp_path_factory.mktemp("template"))
    with SyncToolService.open(**place.options()) as service:
        for source in SOURCES:
            service.define(source)
    return place.base


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    made = Sandbox(RunLimits())
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    await made.start()
    yield made
    await made.close()


async def stories(seeds: range, template: Path, tmp_path: Path, sandbox: Sandbox) -> Counter[str]:
    """Run the stories of all seeds, and count the events."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        base = tmp_path / str(seed)
        shutil.copytree(template, base)
        story = Story(seed, Place(base), sandbox)
        try:
            await story.go()
        except BaseException as error:
            error.add_note(f"seed {seed}, crashes {story.crashes}, failures {story.failures}, rules {story.rules}")
            raise
        shutil.rmtree(base)
        seen.update(f"crash {name}" for name in story.crashes)
        seen.update(f"failure of {name}" for name in story.failures)
        seen["effects"] += len(story.place.done) if story.place.into.exists() else 0
    return seen


async def test_stories(template: Path, tmp_path: Path, sandbox: Sandbox) -> None:
    seen = await stories(range(FEW), template, tmp_path, sandbox)
    # Crashes and failures must happen, or the stories prove nothing.
    assert sum(n for name, n in seen.items() if name.startswith("crash")) > FEW / 4, seen
    assert sum(n for name, n in seen.items() if name.startswith("failure")) > FEW / 4, seen


@pytest.mark.slow
@pytest.mark.timeout(7200)
async def test_many_stories(template: Path, tmp_path: Path, sandbox: Sandbox) -> None:
    await stories(range(FEW, FEW + MANY), template, tmp_path, sandbox)
