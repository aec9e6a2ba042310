"""The sessions of people who have signed in: one for each person and lease, in all processes of a home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from albert_tools.engine.authority.sessions import Lease, Person, Session, Sessions
from albert_tools.engine.authority.team_sessions import TeamSessions
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.record.record import Record
from albert_tools.store.record.verify import verify
from tests.helpers.postgres import server

WORK, HOUR = "/work", 3600.0
ADA = Person("https://login.example.org", "ada", "engineers", "terms")
LEASE = Lease(frozenset({"read_file"}), budget=Budget(calls=5), versions={"count": "v1"})


class Desk:
    """One process on a home, and the time of the test."""

    def __init__(self, place: Path | str) -> None:
        self.place = place
        self.log = Record(place)
        self.now = 1_700_000_000.0
        self.sessions = Sessions(self.log, lambda: self.now)
        self.people = TeamSessions(self.log, self.sessions, lambda: self.now)

    def admit(self, person: Person = ADA, seconds: float = 300, workspace: str = WORK) -> Session:
        return self.people.admit(person, workspace, self.now + seconds, 8 * HOUR, lambda: LEASE)

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.log.entries()]


@pytest.fixture(params=["folder", "database"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "record" if request.param == "folder" else server().url())
    yield made
    made.log.close()


def test_a_session_is_opened_once_and_renewed_by_later_tokens(desk: Desk) -> None:
    first = desk.admit()
    assert (first.person, first.lease.tools, first.lease.versions) == (ADA, LEASE.tools, LEASE.versions)
    assert first.lease.expires == desk.now + 300
    assert (first.client, first.workspace) == ("ada of https://login.example.org", WORK)
    desk.log.append("use", {"session": first.id, "used": {"calls": 3}})
    again = desk.admit(seconds=200)
    assert (again.id, again.lease.expires) == (first.id, first.lease.expires)
    desk.now += 10_000
    token = desk.sessions.token_of(first.id)
    with pytest.raises(Failure) as expired:
        desk.sessions.find(token, WORK)
    assert expired.value.rule == "session.expired"
    later = desk.admit()
    assert (later.id, later.used["calls"], later.lease.expires) == (first.id, 3, desk.now + 300)
    assert desk.sessions.find(token, WORK).id == first.id
    assert desk.kinds() == ["session", "use", "session_times"]
    desk.log.close()
    assert not verify(desk.place).problems


def test_a_session_lives_as_long_as_its_lease_at_most(desk: Desk) -> None:
    first = desk.admit(seconds=100 * HOUR)
    assert first.lease.expires == first.until == desk.now + 8 * HOUR
    desk.now += 8 * HOUR - 1
    assert desk.admit().id == first.id
    desk.now += 1
    second = desk.admit()
    assert second.id != first.id
    assert second.used.get("calls", 0) == 0


def test_another_account_lease_or_workspace_is_another_session(desk: Desk) -> None:
    others = [
        ADA,
        Person("https://login.example.com", "ada", "engineers", "terms"),
        Person("https://login.example.org", "bob", "engineers", "terms"),
        Person("https://login.example.org", "ada", "engineers", "other terms"),
    ]
    found = [desk.admit(person).id for person in others] + [desk.admit(workspace="/other").id]
    assert len(set(found)) == 5
    assert [desk.admit(person).id for person in others] == found[:4]


def test_a_revoked_session_keeps_its_person_out_until_its_time_is_over(desk: Desk) -> None:
    first = desk.admit()
    desk.sessions.end(first.id)
    edited = Person(ADA.issuer, ADA.subject, ADA.lease, "edited terms")
    renamed = Person(ADA.issuer, ADA.subject, "writers", "other terms")
    for person in (ADA, edited, renamed, ADA):
        with pytest.raises(Failure) as refused:
            desk.admit(person, seconds=1000)
        assert refused.value.rule == "session.ended"
    assert desk.kinds() == ["session", "session_ended"]
    desk.admit(Person(ADA.issuer, "bob", ADA.lease, ADA.terms))
    desk.admit(workspace="/other")
    desk.now += 8 * HOUR
    assert desk.admit().id != first.id
    assert desk.admit(edited).lease.tools == LEASE.tools


def test_sessions_that_the_rules_do_not_allow_are_ended(desk: Desk) -> None:
    bob = Person(ADA.issuer, "bob", "writers", "other")
    first, other = desk.admit(), desk.admit(bob)
    own, _ = desk.sessions.open("client", WORK)
    desk.people.withdraw(["other"])
    desk.people.withdraw(["other"])
    ended = {session.id: session.ended for session in desk.sessions.all()}
    assert ended == {first.id: True, other.id: False, own.id: False}
    assert desk.kinds().count("session_ended") == 1
    desk.now += 1
    again = desk.admit()
    assert again.id != first.id
    assert desk.admit(bob).id == other.id
    desk.log.close()
    assert not verify(desk.place).problems


def test_processes_that_race_open_one_session(desk: Desk) -> None:
    others = [Desk(desk.place) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: [one.admit().id for _ in range(10)], others))
    assert len({session for each in found for session in each}) == 1
    assert desk.kinds().count("session") == 1
    for each in others:
        each.log.close()


def test_the_token_of_a_process_works_in_no_other(desk: Desk) -> None:
    session, another = desk.admit(), Desk(desk.place)
    token = desk.sessions.token_of(session.id)
    assert desk.sessions.find(token, WORK).id == session.id
    (entry,) = desk.log.entries(kinds={"session"})
    false = [another.sessions.token_of(session.id), token[:-1], token + "0", token.upper(), f"alb_{session.id}"]
    for each in [*false, entry.data["hash"], session.id, session.client]:
        with pytest.raises(Failure) as unknown:
            desk.sessions.find(each, WORK)
        assert unknown.value.rule == "session.unknown"
    assert token not in json.dumps([entry.data for entry in desk.log.entries()])
    another.log.close()
