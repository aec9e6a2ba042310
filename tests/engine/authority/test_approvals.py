"""Questions and answers as records. There is one question per action. The first answer applies, is used once, and expires."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from albert_tools.engine.authority.approvals import OPEN_SECONDS, Approval, Approvals, Scope
from albert_tools.engine.authority.sessions import Sessions
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record import durability
from albert_tools.store.record.record import Record

BY_HAND = Scope("write_file", "v1", "session", "NORMAL", (), "digest")
BY_TOOL = Scope("write_file", "v1", "session", "NORMAL", ("caller1",))


class Desk:
    """The approvals of a home, and the current time of the test."""

    def __init__(self, folder: Path) -> None:
        self.log = Record(folder)
        self.now = 1_000.0
        self.approvals = Approvals(self.log, lambda: self.now)

    def again(self) -> Approvals:
        """The same approvals in another process."""
        return Approvals(Record(self.log.place), lambda: self.now)

    def ask(self, action: str = "a", scope: Scope | None = BY_HAND, **facts: Any) -> Approval:
        known = {
            "tool": "write_file",
            "version": "v1",
            "arguments": {},
            "rule_id": "r",
            "message": "m",
            "reason": "",
            "risk": "",
        }
        place = {"callers": [], "trail": list(scope.trail) if scope else [], "session": "", "run": "run", "step": ""}
        return self.approvals.ask({"action": action, **known, **place, **facts}, scope)

    def use(self, approval: Approval, desk: Approvals | None = None) -> bool:
        try:
            desk = desk or self.approvals
            with desk._ledger.transaction():
                desk.use(approval, "call")
        except Failure as failure:
            if (failure.code, failure.rule) != ("permission_denied", "approval"):
                raise
            return False
        return True


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "record")
    yield made
    made.log.close()


def code(work: Any, *arguments: Any) -> str:
    with pytest.raises(Failure) as caught:
        work(*arguments)
    return caught.value.code


def test_one_question_per_action(desk: Desk) -> None:
    first = desk.ask()
    assert desk.ask().id == first.id
    assert desk.ask("b").id != first.id
    with ThreadPoolExecutor(6) as threads:
        assert len({a.id for a in threads.map(lambda _: desk.ask("c"), range(6))}) == 1


@pytest.mark.parametrize("wrong", ["", "zz", "%", "\ud800"])
def test_an_unknown_id(desk: Desk, wrong: str) -> None:
    desk.ask()
    assert code(desk.approvals.get, wrong) == "not_found"


def test_a_step_has_one_open_question(desk: Desk) -> None:
    old = desk.ask("a", step="3")
    other = desk.ask("b", step="4")
    new = desk.ask("c", step="3")
    assert [desk.approvals.get(a.id).state for a in (old, other, new)] == ["revoked", "open", "open"]
    assert code(desk.approvals.answer, old.id, "once", "ada") == "exists"


def test_a_session_has_a_limited_number_of_open_questions(desk: Desk) -> None:
    asked = [desk.ask(f"a{n}", session="s", step=str(n)) for n in range(100)]
    with pytest.raises(Failure, match="waits for 100 answers") as caught:
        desk.ask("more", session="s", step="more")
    assert (caught.value.code, caught.value.rule) == ("rate_limited", "approval.open_questions")
    assert desk.ask("a0", session="s", step="0").id == asked[0].id
    assert desk.ask("of another", session="another", run="other").state == "open"
    desk.approvals.answer(asked[0].id, "no", "ada")
    assert desk.ask("more", session="s", step="more").state == "open"


def test_a_question_of_a_session_that_ends_is_closed(desk: Desk) -> None:
    sessions = Sessions(desk.log, lambda: desk.now)
    above, token = sessions.open("above", "/w")
    child, _ = sessions.open("child", "/w", within=token)
    other, _ = sessions.open("other", "/w")
    asked = {s.id: desk.ask(s.id, session=s.id, run=s.id).id for s in (above, child, other)}
    answered = desk.approvals.answer(desk.ask("b", session=child.id, run="b").id, "once", "ada").id
    sessions.end(above.id)
    states = {s.id: desk.approvals.get(asked[s.id]).state for s in (above, child, other)}
    assert states == {above.id: "revoked", child.id: "revoked", other.id: "open"}
    assert desk.approvals.get(answered).state == "yes"
    # A call that was judged before asks its question now.
    with pytest.raises(Failure) as caught:
        desk.ask("late", session=child.id, run="late")
    assert caught.value.rule == "session.ended"


def test_the_first_answer_counts(desk: Desk) -> None:
    asked = desk.ask()
    assert desk.again().answer(asked.id[:5], "once", "ada").state == "yes"
    assert code(desk.approvals.answer, asked.id, "no", "bob") == "exists"
    known = desk.approvals.about("a")
    assert known is not None
    assert (known.choice, known.by) == ("once", "ada")


@pytest.mark.parametrize("choice", ["once", "no"])
def test_an_answer_is_used_up(desk: Desk, choice: Any) -> None:
    given = desk.approvals.answer(desk.ask().id, choice, "ada")
    other = desk.again()
    assert [desk.use(given), desk.use(given), desk.use(given, other)] == [True, False, False]
    assert desk.approvals.about("a") is None
    assert desk.ask().id != given.id


def test_an_unanswered_question_allows_nothing(desk: Desk) -> None:
    asked = desk.ask()
    assert not desk.use(asked)
    # A question that is wrongly believed to be answered allows nothing either.
    assert not desk.use(replace(asked, state="yes"))
    assert not desk.use(replace(asked, state="standing"))


def test_questions_and_answers_expire(desk: Desk) -> None:
    asked, given = desk.ask("a"), desk.approvals.answer(desk.ask("b", run="b").id, "once", "ada")
    desk.now += OPEN_SECONDS
    assert code(desk.approvals.answer, asked.id, "once", "ada") == "timeout"
    assert not desk.use(given)
    assert [desk.approvals.about(a) for a in "ab"] == [None, None]
    assert desk.ask("a").id != asked.id


def test_revocation(desk: Desk) -> None:
    for choice in (None, "once", "session", "no"):
        asked = desk.ask()
        if choice is not None:
            asked = desk.approvals.answer(asked.id, choice, "ada")  # type: ignore[arg-type]
        desk.again().revoke(asked.id)
        assert not desk.use(asked)
        assert desk.approvals.about("a") is None
        assert desk.approvals.standing(BY_HAND) is None
        assert code(desk.approvals.revoke, asked.id) == "exists"


@pytest.mark.parametrize(
    ("choice", "scope", "other", "holds"),
    [
        ("session", BY_HAND, BY_HAND, True),
        ("session", BY_HAND, replace(BY_HAND, arguments="another"), False),
        ("session", BY_HAND, replace(BY_HAND, session="another"), False),
        ("session", BY_HAND, replace(BY_HAND, mode="ALERT"), False),
        ("session", BY_HAND, replace(BY_HAND, version="v2"), False),
        ("session", BY_HAND, BY_TOOL, False),
        ("session", BY_TOOL, BY_HAND, False),
        ("session", BY_TOOL, replace(BY_TOOL, arguments="any"), True),
        ("session", BY_TOOL, replace(BY_TOOL, session="another"), False),
        ("always", BY_TOOL, replace(BY_TOOL, session="another"), True),
        ("always", BY_TOOL, replace(BY_TOOL, mode="ALERT"), False),
        ("always", BY_TOOL, replace(BY_TOOL, tool="bash"), False),
        ("always", BY_TOOL, replace(BY_TOOL, version="v2"), False),
        ("always", BY_TOOL, replace(BY_TOOL, trail=("caller2",)), False),
        ("always", BY_TOOL, replace(BY_TOOL, trail=("caller1", "caller1")), False),
        ("always", BY_TOOL, BY_HAND, False),
        ("once", BY_TOOL, BY_TOOL, False),
        ("no", BY_TOOL, BY_TOOL, False),
    ],
)
def test_the_scope_of_a_lasting_answer(desk: Desk, choice: Any, scope: Scope, other: Scope, holds: bool) -> None:
    desk.approvals.answer(desk.ask(scope=scope).id, choice, "ada")
    for approvals in (desk.approvals, desk.again()):
        found = approvals.standing(other)
        assert (found is not None) is holds
    if found is not None:
        assert [desk.use(found), desk.use(found)] == [True, True]


@pytest.mark.parametrize(
    ("scope", "choices"),
    [(BY_HAND, ("once", "session", "no")), (BY_TOOL, ("once", "session", "always", "no")), (None, ("once", "no"))],
)
def test_possible_answers(desk: Desk, scope: Scope | None, choices: Any) -> None:
    asked = desk.ask(scope=scope)
    assert asked.choices == choices
    for choice in {"session", "always", "yes", "", None} - set(choices):
        assert code(desk.approvals.answer, asked.id, choice, "ada") == "invalid_arguments"
    assert desk.approvals.get(asked.id).state == "open"


def test_an_answer_is_revoked_only_on_the_disk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = desk.ask()

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(durability, "_sync", fail)
    for desks in (desk.approvals, desk.again()):  # The second one finds it revoked.
        with pytest.raises(Failure, match="can't sync the record"):
            desks.revoke(asked.id)
