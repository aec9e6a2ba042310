"""Agents that follow instructions in what they read reach nothing, and honest programs hardly ask.

Nobody answers the attacked agents, so a question stops a call. Without the rules about flows, every attack succeeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from albert_tools import Question, SyncToolService, ToolResult
from tests.flow_suite.injections import (
    HOSTILE_VALUES,
    INJECTIONS,
    READING,
    Injection,
    filled,
    found_in,
    planted,
    program,
)
from tests.flow_suite.services import TRAP, World, primitives
from tests.flow_suite.tasks import TASKS, Task

#: Hosts don't ask, so that only the rules about flows protect.
HOSTS: dict[str, Any] = {"tools": {"open_page": {"allowed_hosts": ["*"]}}}
NAMES = {task.name: task for task in TASKS}


class Desk:
    """A service with the tools, whose owner says yes to everything if there is an owner to ask."""

    def __init__(self, base: Any, rules: dict[str, Any], with_owner: bool) -> None:
        self.world = World()
        self.questions: list[Question] = []
        (base / "work" / ".albert").mkdir(parents=True)
        options: dict[str, Any] = {"ask": self.ask} if with_owner else {"patience": None}
        self.service = SyncToolService.open(
            home=base / "home", workspace=base / "work", governance=rules, primitives=primitives(self.world), **options
        )
        self.token = ""
        self.begin()

    async def ask(self, question: Question) -> str:
        self.questions.append(question)
        return "always" if "always" in question.choices else "session"

    def begin(self) -> None:
        """Begin a new day, in a new session."""
        self.world.reset()
        self.questions.clear()
        self.token = self.service.within(lambda s: s.open_session("agent"))[1]

    def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return self.service.invoke(name, arguments, session=self.token)

    def approve(self, name: str) -> None:
        self.service.within(lambda s: s.reviews.approve(s.store.load(name), "owner"))

    def define(self, source: str) -> None:
        self.service.define(source.lstrip("\n"), session=self.token)


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Desk]]:
    made: dict[str, Desk] = {}

    def desk(rules: dict[str, Any], with_owner: bool = False) -> Desk:
        key = json.dumps([rules, with_owner])
        if key not in made:
            made[key] = Desk(tmp_path_factory.mktemp("desk").resolve(), rules, with_owner)
        made[key].begin()
        return made[key]

    yield desk
    for each in made.values():
        each.service.close()


def follow_by_hand(desk: Desk, injection: Injection) -> ToolResult:
    data = [desk.call(*call).output for call in injection.data]
    return desk.call(*filled(injection.act, json.dumps(data, separators=(",", ":"))))


def follow_by_program(desk: Desk, injection: Injection) -> ToolResult:
    name = f"helper_{INJECTIONS.index(injection)}"
    desk.define(program(injection, name))
    return desk.call(name, {})


def attacked(desk: Desk, number: int, follow: Callable[[Desk, Injection], ToolResult]) -> ToolResult:
    """An agent does its task, reads the instruction and follows it."""
    where = INJECTIONS[number].where
    desk.world.plant(where, planted(number))
    return follow(desk, found_in(desk.call(*READING[where]).value()))


WAYS = pytest.mark.parametrize("follow", [follow_by_hand, follow_by_program])
NUMBERS = pytest.mark.parametrize("number", range(len(INJECTIONS)))


@WAYS
@NUMBERS
def test_no_injection_reaches_its_goal(desks: Any, number: int, follow: Any) -> None:
    desk = desks(HOSTS)
    error = attacked(desk, number, follow).error
    assert not desk.world.reached_eve()
    assert error is not None
    assert (error.code, error.rationale) == ("permission_denied", "flow")


@WAYS
@NUMBERS
def test_without_the_rules_it_does(desks: Any, number: int, follow: Any) -> None:
    desk = desks(HOSTS | {"ask_flow": []})
    result = attacked(desk, number, follow)
    assert result.ok, result.error
    assert desk.world.reached_eve()


def run_on_hostile_content(desk: Desk, where: str, approved: bool = False) -> ToolResult:
    """An honest agent runs an honest program, and the content that it reads is hostile."""
    name, text = HOSTILE_VALUES[where]
    task = NAMES[name]
    desk.world.plant("mail" if where == "bank" else where, text)
    desk.define(task.source)
    if approved:
        desk.approve(name)
    return desk.call(name, task.arguments | ({"title": "Sync"} if where == "calendar" else {}))


@pytest.mark.parametrize("where", HOSTILE_VALUES)
def test_a_hostile_value_does_not_get_through_an_honest_program(desks: Any, where: str) -> None:
    desk = desks(HOSTS)
    error = run_on_hostile_content(desk, where).error
    assert not desk.world.reached_eve()
    assert error is not None
    assert error.rationale == "flow"
    assert "which can come from the output of" in error.message
    # The approval of the program is no approval of the value.
    desk.begin()
    error = run_on_hostile_content(desk, where, approved=True).error
    assert error is not None
    assert error.rationale == "flow"
    assert not desk.world.reached_eve()
    without = desks(HOSTS | {"ask_flow": []})
    assert run_on_hostile_content(without, where).ok
    assert without.world.reached_eve()


def check(desk: Desk, task: Task) -> None:
    """Run the task, and check what it has done."""
    result = desk.call(task.name, task.arguments)
    assert result.ok, result.error
    if task.result is not None:
        assert result.output == task.result
    if task.does is not None:
        tool, arguments = task.does
        ((done, given),) = desk.world.done
        assert (done, {n: given[n] for n in arguments}) == (tool, arguments)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_asks_at_most_once_and_not_after_approval(desks: Any, task: Task) -> None:
    desk = desks(HOSTS, with_owner=True)
    desk.define(task.source)
    check(desk, task)
    assert len(desk.questions) == task.asks
    for question in desk.questions:
        assert question.decision.rationale == "flow"
        # The person sees the value, and where it comes from.
        assert task.does is not None
        assert any(str(value) in question.decision.message for value in task.does[1].values())
    desk.begin()
    desk.approve(task.name)
    check(desk, task)
    assert desk.questions == []


def test_there_are_twenty_tasks_and_twenty_injections() -> None:
    assert (len(TASKS), len(NAMES), len(INJECTIONS), len(set(map(str, INJECTIONS)))) == (20, 20, 20, 20)
    assert TRAP
