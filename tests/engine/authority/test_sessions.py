"""Sessions and their leases: which calls are allowed and until when. The records contain nothing that gives access."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.authority.sessions import MAX_SESSION_DEPTH, Line, Session, Sessions
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.record import durability
from albert_tools.store.record.record import Record

WORK = "/work"


class Desk:
    """The sessions of a home, and the current time of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = Record(folder)
        self.now = 1_000.0
        self.sessions = Sessions(self.log, lambda: self.now)

    def open(self, **options: Any) -> tuple[Session, str]:
        return self.sessions.open("client", WORK, **options)

    def reopened(self) -> Sessions:
        """The same sessions in another process."""
        return Sessions(Record(self.folder), lambda: self.now)

    def line(self, session: Session) -> Line:
        return self.sessions.line(session.id)

    def use(self, session: Session, **used: float) -> None:
        self.log.append("use", {"session": session.id, "used": used})

    def see(self, session: Session, **saw: str) -> None:
        self.log.append("result", {"session": session.id, "saw": saw})


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "record")
    yield made
    made.log.close()


def rule(work: Any, *arguments: Any, **options: Any) -> str | None:
    """The rule that refuses the call."""
    with pytest.raises(Failure) as caught:
        work(*arguments, **options)
    assert caught.value.denied
    return caught.value.rule


def test_a_token_finds_its_session_in_every_process(desk: Desk) -> None:
    session, token = desk.open(cwd="src", tools=frozenset({"read_file"}), budget=Budget(calls=3))
    for sessions in (desk.sessions, desk.reopened()):
        found = sessions.find(token, WORK)
        assert (found.id, found.cwd, found.lease) == (session.id, "src", session.lease)


@pytest.mark.parametrize("token", ["", "alb_", "alb_" + "0" * 64, "\ud800", 7, None, b"x", ["x"]])
def test_invalid_tokens(desk: Desk, token: Any) -> None:
    desk.open()
    assert rule(desk.sessions.find, token, WORK) == "session.unknown"


def test_no_name_in_the_records_works_as_a_token(desk: Desk) -> None:
    session, token = desk.open()
    grant = desk.sessions.grant(session, "0123456789abcdef", 5_000.0)
    hashes = [entry.data["hash"] for entry in desk.log.entries(kinds={"session"})]
    assert token not in str(list(desk.log.entries()))
    for name in (session.id, grant.id, *hashes, f"run:{grant.id}", session.client):
        assert rule(desk.sessions.find, name, WORK) == "session.unknown"
    assert token not in b"".join(p.read_bytes() for p in desk.folder.rglob("*") if p.is_file()).decode(
        "utf-8", "replace"
    )


def test_the_end_of_a_session(desk: Desk) -> None:
    session, token = desk.open(seconds=10)
    desk.now += 9.999
    desk.sessions.find(token, WORK)
    desk.now += 0.001
    assert rule(desk.sessions.find, token, WORK) == "session.expired"
    session, token = desk.open()
    desk.reopened().end(session.id[:6])
    assert rule(desk.sessions.find, token, WORK) == "session.ended"
    assert rule(desk.sessions.demand, desk.line(session), "read_file") == "session.ended"


def test_another_workspace(desk: Desk) -> None:
    token = desk.open()[1]
    assert rule(desk.sessions.find, token, "/elsewhere") == "session.workspace"
    assert rule(desk.sessions.open, "client", "/elsewhere", within=token) == "session.workspace"


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"tools": frozenset({"read_file", "bash"})}, "lease.tools"),
        ({"budget": Budget(calls=11)}, "lease.budget.calls"),
        ({"budget": Budget(calls=9, bytes_written=101)}, "lease.budget.bytes_written"),
        ({"budget": Budget(calls=8)}, "lease.budget.calls"),
    ],
)
def test_an_inner_session_gets_no_more_than_its_outer_session(desk: Desk, options: Any, refused: str) -> None:
    above, token = desk.open(tools=frozenset({"read_file"}), budget=Budget(calls=10, bytes_written=100))
    if options == {"budget": Budget(calls=8)}:
        desk.use(above, calls=3)
        assert desk.open(within=token, budget=Budget(calls=7))
    assert rule(desk.open, within=token, **options) == refused


def test_an_inner_session_lives_no_longer_than_its_outer_session(desk: Desk) -> None:
    above, token = desk.open(seconds=100)
    for seconds in (50, 100, 1_000, None):
        assert desk.open(within=token, seconds=seconds)[0].lease.expires == min(1_000 + (seconds or 100), 1_100)
    inner = desk.open(within=token)[1]
    desk.sessions.end(above.id)
    assert rule(desk.sessions.find, inner, WORK) == "session.ended"
    assert rule(desk.open, within=inner) == "session.ended"


def test_the_tool_lists_of_all_outer_sessions_apply(desk: Desk) -> None:
    token = desk.open(tools=frozenset({"read_file", "list_directory"}))[1]
    inner, inner_token = desk.open(within=token)
    assert inner.lease.tools == {"read_file", "list_directory"}
    last = desk.line(desk.open(within=inner_token, tools=frozenset({"read_file"}))[0])
    desk.sessions.demand(last, "read_file")
    for tool in ("list_directory", "bash"):
        assert rule(desk.sessions.demand, last, tool) == "lease.tools"


def test_nesting_of_sessions_is_limited(desk: Desk) -> None:
    token = desk.open()[1]
    for _ in range(MAX_SESSION_DEPTH - 1):
        token = desk.open(within=token)[1]
    assert rule(desk.open, within=token) == "session.depth"


def test_use_is_charged_to_all_outer_sessions(desk: Desk) -> None:
    above, token = desk.open(budget=Budget(calls=5, bytes_written=10))
    inner, inner_token = desk.open(within=token, budget=Budget(calls=4))
    desk.use(inner, calls=2, bytes_written=4)
    desk.use(above, calls=1)
    desk.use(above, wall_seconds=0.25)
    used = dict(desk.sessions.find(token, WORK).used)
    # The entries themselves are stored, too.
    assert used.pop("bytes_stored") > 100
    assert str(used) == "{'bytes_written': 4, 'calls': 3, 'wall_seconds': 0.25}"
    line = desk.sessions.line_of(inner_token, WORK)
    assert [desk.sessions.left(line, u) for u in ("calls", "bytes_written", "model_tokens")] == [2, 6, float("inf")]
    desk.use(above, calls=2)
    line = desk.line(inner)
    assert rule(desk.sessions.afford, line, "read_file") == "lease.budget.calls"
    assert desk.sessions.left(line, "calls") == 0


def test_what_a_session_has_seen_counts_for_the_sessions_around_and_within_it(desk: Desk) -> None:
    above, token = desk.open()
    reader, _ = desk.open(within=token)
    sender, _ = desk.open(within=token)
    other, _ = desk.open()
    desk.see(reader, private=".env")
    desk.see(above, outside="content of example.org", private="id_rsa")
    for sessions in (desk.sessions, desk.reopened()):
        seen = {"private": ".env", "outside": "content of example.org"}
        # The first example of a kind is kept. The agent above can tell the sender what it has heard from the reader.
        for session in (reader, sender, above):
            assert sessions.seen(sessions.line(session.id)) == seen
        assert sessions.seen(sessions.line(other.id)) == {}


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "5", 2**53])
def test_invalid_budgets(value: Any) -> None:
    with pytest.raises(Failure, match="the budget of calls can't be"):
        Budget(calls=value)


def test_a_budget_of_zero_allows_nothing(desk: Desk) -> None:
    assert rule(desk.sessions.afford, [desk.open(budget=Budget(calls=0))[0]], "read_file") == "lease.budget.calls"


def test_a_grant_outlives_the_lease_but_not_a_revocation(desk: Desk) -> None:
    above, token = desk.open(seconds=100)
    session, _ = desk.open(within=token, budget=Budget(calls=5), tools=frozenset({"read_file"}))
    desk.use(session, calls=2)
    grant = desk.sessions.grant(session, "run1", 5_000.0)
    assert (grant.lease.tools, grant.lease.budget.calls, grant.lease.expires) == ({"read_file"}, 3, 5_000.0)
    desk.now += 1_000
    for sessions in (desk.sessions, desk.reopened()):
        assert sessions.line_of_run(grant.id, WORK, "run1")[0].id == grant.id
    # The grant is for this run only.
    assert rule(desk.sessions.line_of_run, grant.id, WORK, "run2") == "session.unknown"
    assert rule(desk.sessions.line_of_run, session.id, WORK, "run1") == "session.expired"
    assert rule(desk.sessions.line_of_run, ["x"], WORK, "run1") == "session.unknown"
    # The rest of the rest.
    desk.use(grant, calls=1)
    second = desk.sessions.grant(grant, "run1", 6_000.0)
    assert (second.parent, second.lease.budget.calls) == (session.id, 2)
    desk.use(session, calls=2)
    assert desk.sessions.left(desk.line(second), "calls") == 0
    desk.now = 5_500
    assert rule(desk.sessions.line_of_run, grant.id, WORK, "run1") == "session.expired"
    desk.sessions.end(above.id)
    assert rule(desk.sessions.line_of_run, second.id, WORK, "run1") == "session.ended"


@pytest.mark.parametrize(
    "options",
    [
        {"client": ""},
        {"client": "a\n"},
        {"client": 1},
        {"cwd": "\0"},
        {"seconds": 0},
        {"seconds": float("nan")},
        {"tools": [1]},
    ],
)
def test_invalid_arguments(desk: Desk, options: Any) -> None:
    with pytest.raises(Failure) as caught:
        desk.sessions.open(**{"client": "client", "workspace": WORK, **options})
    assert caught.value.code == "invalid_arguments"
    assert desk.sessions.all() == []


def test_reading_creates_nothing(desk: Desk) -> None:
    assert desk.sessions.all() == []
    assert rule(desk.sessions.find, "alb_", WORK) == "session.unknown"
    assert not desk.folder.exists()


def test_the_session_that_a_call_names(desk: Desk) -> None:
    desk.open()
    for wrong in ("", "zz", "\ud800"):
        with pytest.raises(Failure) as caught:
            desk.sessions.end(wrong)
        assert caught.value.code == "not_found"


@pytest.mark.parametrize("decide", ["open", "end"])
def test_a_session_is_opened_and_ended_only_on_the_disk(
    desk: Desk, decide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, _ = desk.open()

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(durability, "_sync", fail)
    with pytest.raises(Failure, match="can't sync the record"):
        desk.open() if decide == "open" else desk.sessions.end(session.id)


def test_that_a_session_has_ended_is_answered_only_if_it_is_on_the_disk(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, _ = desk.open()
    syncs: list[int] = []

    def fail_once(handle: int) -> None:
        syncs.append(handle)
        if len(syncs) == 1:
            raise OSError(errno.EIO, "")

    monkeypatch.setattr(durability, "_sync", fail_once)
    with pytest.raises(Failure, match="can't sync the record"):
        desk.sessions.end(session.id)
    # This process doesn't know what is on the disk.
    with pytest.raises(Failure, match="can't sync the record"):
        desk.sessions.end(session.id)
    assert len(syncs) == 1
    assert desk.reopened().end(session.id).ended
    assert len(syncs) == 2
