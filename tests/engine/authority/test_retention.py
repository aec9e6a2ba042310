"""Compacted records give the same decisions as the complete records."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.authority.approvals import Approvals, Scope
from albert_tools.engine.authority.idempotency import DedupeKeys
from albert_tools.engine.authority.retention import condensed
from albert_tools.engine.authority.sessions import Budget, Sessions
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.record import Record

THEN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
UNTIL = datetime(2026, 1, 2, tzinfo=UTC)


class Old:
    """A log whose entries are old if they were written through `open`. Other logs on its folder have the present time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._now = int(THEN * 1e9)

    def _tick(self) -> int:
        self._now += 10**6
        return self._now

    @property
    def now(self) -> float:
        return self._now / 1e9

    def open(self) -> Record:
        return Record(self.folder, nanoseconds=self._tick)

    def fold(self) -> Any:
        with Record(self.folder) as log:
            return log.fold(UNTIL, condensed)


@pytest.fixture
def old(tmp_path: Path) -> Old:
    return Old(tmp_path / "record")


def facts(action: str, tool: str = "put") -> dict[str, Any]:
    return {
        "action": action, "tool": tool, "version": "1", "arguments": {}, "rule_id": "r", "message": "m", "reason": "",
        "risk": "low", "callers": [], "trail": ["v"], "session": "", "run": "", "step": "",
    }  # fmt: skip


def test_the_use_of_sessions_is_retained(old: Old) -> None:
    with old.open() as log:
        sessions = Sessions(log, lambda: old.now)
        above, token = sessions.open("a", "/w", seconds=10**9, budget=Budget(calls=10, bytes_written=100))
        within, inner = sessions.open("b", "/w", within=token, budget=Budget(calls=4))
        gone, _ = sessions.open("c", "/w", within=token)
        for number in range(7):
            whose = (above, within)[number % 2]
            log.append("use", {"session": whose.id, "used": {"calls": 1, "bytes_written": number / 2}})
            log.append("call", {"call": str(number)})
        log.append("use", {"session": None, "windows": ["tool:put"], "sessions": [], "clock": old.now, "used": {}})
        sessions.end(gone.id)
        before = {s.id: s for s in sessions.all()}
    found = old.fold()
    # Two sums in place of eight uses, and no calls.
    assert (found.entries, found.kept) == (19, 6)
    with Record(old.folder) as log:
        sessions = Sessions(log, lambda: old.now)
        assert {s.id: s for s in sessions.all()} == before
        assert sessions.find(inner, "/w").used == {"calls": 3, "bytes_written": 4.5}
        log.append("use", {"session": within.id, "used": {"calls": 1}})
        with pytest.raises(Failure) as caught:
            sessions.afford(within, "put")
        assert caught.value.rule == "lease.budget.calls"
        with pytest.raises(Failure) as caught:
            sessions.find_for_run(gone.id, "/w", "r")
        assert caught.value.rule == "session.ended"
    assert old.fold().segments == 0


def test_answers_apply_or_are_used_as_before(old: Old) -> None:
    scopes = {name: Scope("put", name, "s", "NORMAL", ("v",)) for name in ("standing", "revoked")}
    with old.open() as log:
        desk = Approvals(log, lambda: old.now)
        made = {}
        for name in ("used", "standing", "revoked", "open", "yes", "later"):
            made[name] = desk.ask(facts(name), scopes.get(name))
        for name in ("used", "yes", "later"):
            desk.answer(made[name].id, "once", "ada")
        for name in ("standing", "revoked"):
            desk.answer(made[name].id, "always", "ada")
        desk.revoke(made["revoked"].id)
        with log.exclusively():
            desk.use(desk.get(made["used"].id), "c")
        before = {a.id: a for a in desk.all()}
        # An entry of another process that still runs. It is not compacted with the entries that it refers to.
        with Record(old.folder) as other, other.exclusively():
            Approvals(other, lambda: old.now).use(desk.get(made["later"].id), "c")
        del before[made["later"].id]
    old.fold()
    with Record(old.folder) as log:
        desk = Approvals(log, lambda: old.now)
        assert {a.id: a for a in desk.all()} == before
        assert [before[made[name].id].state for name in ("standing", "open", "yes")] == ["standing", "open", "yes"]
        assert desk.standing(scopes["standing"]) is not None
        assert desk.standing(scopes["revoked"]) is None
        for name in ("used", "later"):
            with pytest.raises(Failure), log.exclusively():
                desk.use(made[name], "c")
        with log.exclusively():
            desk.use(desk.get(made["yes"].id), "c")
            with pytest.raises(Failure):
                desk.use(desk.get(made["yes"].id), "c")


def test_a_use_whose_question_is_not_compacted_is_retained(old: Old) -> None:
    with Record(old.folder) as asking:
        desk = Approvals(asking, lambda: old.now)
        question = desk.ask(facts("a"), None)
        desk.answer(question.id, "once", "ada")
        with old.open() as log:
            # An entry of a process that has ended, and whose clock was far behind.
            log.append("approval_used", {"approval": question.id, "call": "c"})
        old.fold()
        fresh = Approvals(asking, lambda: old.now)
        assert [e.kind for e in asking.entries({"approval_used"})] == ["approval_used"]
        assert fresh.get(question.id).state in ("used", "yes")


def test_keys_are_forgotten_after_their_time(old: Old) -> None:
    with old.open() as log:
        keys = DedupeKeys(log)
        keys.begin("k", "d", "r")
        keys.finish("k", "r", "kept")
    assert old.fold().kept == 0
    with Record(old.folder) as log:
        assert DedupeKeys(log).begin("k", "other", "r2") is None
