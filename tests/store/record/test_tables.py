"""The state tables are a function of the entries: whatever happens, `verify` builds the same rows again."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from albert_tools.engine.authority.approvals import Approvals, Scope
from albert_tools.engine.authority.idempotency import DedupeKeys
from albert_tools.engine.authority.rate_limit import RateLimits
from albert_tools.engine.authority.sessions import Lease, Person, Sessions
from albert_tools.engine.authority.team_sessions import TeamSessions
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import FAILING
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.record import repeats, uses
from albert_tools.store.record.record import Record
from albert_tools.store.record.retention import trim
from albert_tools.store.record.verify import verify
from tests.store.record.conftest import Place

LIMITS = [("tool:write_file", 5), ("category:system_write", 7)]


class Life:
    """Random operations of several processes on one home, with a clock that sometimes goes back."""

    def __init__(self, place: Place, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 1_700_000_000.0
        self.records = [Record(place, nanoseconds=lambda: round(self.now * 1e9)) for _ in range(2)]
        self.tokens = ["unknown"]

    def step(self) -> None:
        """One operation. Refusals are part of life."""
        self.now += self.random.choice([0.001, 1, 60, 900, 4000, -30, -5000])
        with suppress(Failure):
            did = [
                self.open,
                self.end,
                self.sign_in,
                self.call,
                self.loop,
                self.ask,
                self.answer,
                self.revoke,
                self.repeat,
                self.review,
                self.see,
                self.store,
            ]
            self.random.choice(did)()

    @property
    def record(self) -> Record:
        return self.random.choice(self.records)

    def clock(self) -> float:
        return self.now

    def open(self) -> None:
        within = self.random.choice([None, *self.tokens[1:]])
        budget = Budget(calls=self.random.choice([None, 3]), bytes_written=0.5)
        _, token = Sessions(self.record, self.clock).open("c", "/w", within=within, seconds=10_000, budget=budget)
        self.tokens.append(token)

    def sign_in(self) -> None:
        record = self.record
        people = TeamSessions(record, Sessions(record, self.clock), self.clock)
        person = Person("https://login.example.org", self.random.choice("ab"), "all", self.random.choice("xy"))
        people.admit(person, "/w", self.now + self.random.choice([300, 9000]), 10_000, Lease)
        if self.random.random() < 0.2:
            people.withdraw(["x"])

    def end(self) -> None:
        sessions = Sessions(self.record, self.clock)
        for found in sessions.all()[:1]:
            if self.random.random() < 0.2:
                sessions.end(found.id)

    def call(self) -> None:
        record = self.record
        sessions, limits = Sessions(record, self.clock), RateLimits(record, self.clock)
        session = sessions.find(self.random.choice(self.tokens), "/w") if self.random.random() < 0.5 else None
        line = sessions.lineage(sessions.line(session.id)) if session is not None else []
        with record.transaction():
            limits.demand(LIMITS, line, "t")
            used = {"calls": 1, "bytes_written": 0.1}
            entry = {"session": session.id if session else None, "used": used, **limits.use(LIMITS, line)}
            record.append("use", entry)
            if self.random.random() < 0.1:
                raise Failure("io_error", "the transaction fails")

    def loop(self) -> None:
        record, failed = self.record, self.random.random() < 0.8
        outcome = RateLimits(record, self.clock).outcome(
            self.random.choice(["", "s"]), self.random.choice("ab"), failed=failed
        )
        with record.transaction():
            record.append("result", outcome)
            if self.random.random() < 0.1:
                raise Failure("io_error", "the transaction fails")

    def check_known(self) -> None:
        """Every process knows which request is failing and how a version was reviewed, whichever process has recorded it."""
        rows = self.record.database.rows("SELECT state FROM reviews WHERE tool = 't' AND version = 'v1'")
        reviews = [each.reviews.get("t", "v1") for each in self.records]
        assert [each and each.state for each in reviews] == [rows[0][0] if rows else None] * 2
        for session in ("", "s"):
            query = "SELECT bucket FROM uses WHERE session = ? AND bucket LIKE 'failing:%'"
            rows = self.record.database.rows(query, (session,))
            expected = rows[0][0].removeprefix(FAILING) if rows else None
            assert [each.uses.failing(session) for each in self.records] == [expected] * 2

    def ask(self) -> None:
        scope = self.random.choice([None, Scope("t", "v", "s", "NORMAL"), Scope("t", "v", "s", "NORMAL", ("c",))])
        facts = {
            "tool": "t",
            "version": "v",
            "arguments": {},
            "rule_id": "r",
            "message": "m",
            "callers": [],
            "trail": [],
        }
        place = {"run": self.random.choice(["", "a", "b"]), "step": self.random.choice(["1", "2"])}
        action = self.random.choice("xyz")
        Approvals(self.record, self.clock).ask(
            {"action": action, **facts, **place}, scope, self.random.choice([10, 10_000])
        )

    def answer(self) -> None:
        approvals = Approvals(self.record, self.clock)
        found = self.random.choice(approvals.all(("open",)) or [None])
        if found is not None:
            approvals.answer(found.id, self.random.choice(found.choices), "ada")

    def revoke(self) -> None:
        record = self.record
        approvals = Approvals(record, self.clock)
        for found in approvals.all(("yes", "no", "standing"))[:1]:
            if self.random.random() < 0.3:
                approvals.revoke(found.id)
            else:
                with record.transaction():
                    approvals.use(found, "call")

    def repeat(self) -> None:
        keys, run = DedupeKeys(self.record, self.clock), self.random.choice("ab")
        key = str(self.random.randrange(20))
        if keys.begin(key, "d", run) is not None:
            keys.finish(key, run, self.random.choice(["kept", "dropped"]))

    def see(self) -> None:
        record = self.record
        session = Sessions(record, self.clock).find(self.random.choice(self.tokens), "/w")
        saw = {self.random.choice(["private", "outside"]): self.random.choice("abc")}
        record.append("result", {"session": session.id, "saw": saw})

    def store(self) -> None:
        sessions = Sessions(self.record, self.clock)
        ref = "b3:" + self.random.choice("abc") * 64
        sessions.store(sessions.find(self.random.choice(self.tokens), "/w"), ref, 10, float("inf"))

    def review(self) -> None:
        version = {"tool": self.random.choice("tuv"), "version": self.random.choice(["v1", "v2"])}
        state = self.random.choice(["active", "draft", "deprecated", "revoked"])
        if self.random.random() < 0.3:
            self.record.append("definition", version)
        else:
            self.record.append("review", {**version, "state": state, "by": "ada", "why": "", "manifest": "m"})


def test_what_is_cached_ends_with_a_transaction_that_failed(place: Place) -> None:
    version = {"tool": "t", "version": "v", "by": "ada", "why": "", "manifest": "m"}

    def fail(record: Record) -> None:
        with suppress(Failure), record.transaction():
            raise Failure("io_error", "the transaction fails")

    with Record(place) as one, Record(place) as other:
        for state in ("active", "revoked", "active"):
            fail(one)
            one.reviews.get("t", "v")
            other.append("review", {**version, "state": state})
            # It has read the end of the record again.
            fail(one)
            found = one.reviews.get("t", "v")
            assert found is not None
            assert found.state == state


@pytest.mark.parametrize(
    ("place", "seed"), [("folder", 0), ("folder", 1), ("folder", 2), ("url", 0)], indirect=["place"]
)
def test_the_entries_give_the_same_rows_again(place: Place, seed: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(repeats, "MAX_KEYS", 10)
    monkeypatch.setattr(uses, "_PRUNED_EACH", 4)
    life = Life(place, seed)
    for i in range(400):
        life.step()
        if life.random.random() < 0.5:
            life.check_known()
        if i == 250:
            # All entries so far are old. The rest begins with a checkpoint.
            life.now = time.time()
            assert life.record.database.rows("SELECT * FROM stored")
            assert trim(life.record, datetime.now(UTC) - timedelta(days=1)).entries > 100
            # All sessions have expired long ago.
            assert not life.record.database.rows("SELECT * FROM stored")
    found = verify(place)
    assert found.problems == ()
    counts = {
        t: len(life.record.database.rows(f"SELECT * FROM {t}")) for t in ("sessions", "uses", "approvals", "reviews")
    }
    assert all(counts.values()), counts
    assert 0 < len(life.record.database.rows("SELECT * FROM repeats")) <= 10
    for record in life.records:
        record.close()
