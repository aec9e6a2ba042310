"""The states of saved versions: who decides what, what an approval binds to, and what remains after a crash."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.authority.reviews import BY_RULES, MAX_VERSIONS, Reviews
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record import durability
from albert_tools.store.record.record import Record
from albert_tools.store.record.verify import verify
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers.children import Child, Report
from tests.helpers.versions import make

FIRST, SECOND = make(), make(text="a.lower()")


@pytest.fixture
def store(tmp_path: Path) -> TinyToolStore:
    found = TinyToolStore(tmp_path / "tools")
    found.save(FIRST)
    return found


@pytest.fixture
def reviews(tmp_path: Path, store: TinyToolStore) -> Any:
    with Record(tmp_path / "record") as record:
        yield Reviews(record, store)
    assert verify(tmp_path / "record").ok


def states(reviews: Reviews) -> dict[str, str]:
    names = {FIRST.version: "first", SECOND.version: "second"}
    return {names[s.version]: s.state for s in reviews.all("shout")}


def test_a_saved_version_is_pending_until_it_is_approved(reviews: Reviews) -> None:
    assert [(s.tool, s.version, s.state) for s in reviews.queue()] == [("shout", FIRST.version, "pending")]
    done = reviews.approve(FIRST, "ann", "it only shouts")
    assert (done.state, done.by, done.why) == ("active", "ann", "it only shouts")
    assert done.time
    assert reviews.queue() == []


def test_the_approved_version_stays_active_until_the_next_one_is_approved(
    reviews: Reviews, store: TinyToolStore
) -> None:
    reviews.approve(FIRST, "ann")
    store.save(SECOND)
    assert states(reviews) == {"second": "pending", "first": "active"}
    assert [s.version for s in reviews.queue()] == [SECOND.version]
    reviews.approve(SECOND, "bob")
    assert states(reviews) == {"second": "active", "first": "deprecated"}
    first = reviews.state("shout", FIRST.version)
    assert (first.by, first.why) == ("bob", f"replaced by {SECOND.version}")


@pytest.mark.parametrize(
    ("decide", "state", "words"), [("reject", "revoked", "rejected"), ("send_back", "draft", "sent back")]
)
def test_a_refused_version_has_the_reason(reviews: Reviews, decide: str, state: str, words: str) -> None:
    done = getattr(reviews, decide)("shout", FIRST.version, "ann", "too loud")
    assert (done.state, done.by, done.decided, done.reason) == (state, "ann", words, ": too loud")
    assert reviews.queue() == []
    assert reviews.approve(FIRST, "ann").state == "active"


@pytest.mark.parametrize("decide", ["approve", "reject", "send_back", "revoke"])
def test_a_decision_is_answered_only_if_it_is_on_the_disk(
    reviews: Reviews, decide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(durability, "_sync", fail)
    what = (FIRST,) if decide == "approve" else ("shout", FIRST.version)
    with pytest.raises(Failure, match="can't sync the record"):
        getattr(reviews, decide)(*what, "ann", "too loud")


@pytest.mark.parametrize("decide", ["approve", "revoke"])
def test_a_decision_of_another_process_is_answered_only_if_it_is_on_the_disk(
    reviews: Reviews, store: TinyToolStore, tmp_path: Path, decide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "")

    what = (FIRST,) if decide == "approve" else ("shout", FIRST.version)
    getattr(reviews, decide)(*what, "ann", "too loud")
    monkeypatch.setattr(durability, "_sync", fail)
    with pytest.raises(Failure, match="can't sync the record"):
        getattr(Reviews(Record(tmp_path / "record"), store), decide)(*what, "ann", "too loud")


@pytest.mark.parametrize("decide", ["reject", "send_back"])
def test_an_active_version_is_not_refused_but_deprecated(reviews: Reviews, decide: str) -> None:
    reviews.approve(FIRST, "ann")
    with pytest.raises(Failure, match="is active, not pending"):
        getattr(reviews, decide)("shout", FIRST.version, "ann", "no")
    assert reviews.deprecate("shout", FIRST.version, "ann").state == "deprecated"
    with pytest.raises(Failure, match="is deprecated, not active"):
        reviews.deprecate("shout", FIRST.version, "ann")


def test_a_deprecated_version_that_is_defined_again_is_pending(
    reviews: Reviews, tmp_path: Path, store: TinyToolStore
) -> None:
    reviews.approve(FIRST, "ann")
    reviews.deprecate("shout", FIRST.version, "ann")
    before = reviews.changed()
    with Record(tmp_path / "record") as record:
        record.append("definition", {"tool": "shout", "version": FIRST.version, "by": "s1"})
    assert states(reviews) == {"first": "pending"}
    assert [s.by for s in reviews.queue()] == ["s1"]
    assert reviews.changed() == before


def test_an_approval_does_not_hold_for_another_manifest(reviews: Reviews, store: TinyToolStore) -> None:
    reviews.approve(FIRST, "ann")
    (file,) = store.folder.rglob("*.json")
    changed = json.loads(file.read_text())
    (document,) = changed["versions"].values()
    document["manifest"]["effects"] = []
    file.write_text(json.dumps(changed))
    found = reviews.state("shout", FIRST.version)
    assert (found.state, found.why) == (
        "pending",
        "what it can do was found out anew, and differs from what ann approved",
    )
    assert [s.state for s in reviews.queue()] == ["pending"]


def test_a_version_is_approved_with_the_manifest_that_was_read(reviews: Reviews) -> None:
    with pytest.raises(Failure, match="not the one that was reviewed") as caught:
        reviews.approve(FIRST, "ann", manifest="0" * 64)
    assert caught.value.code == "outdated"
    read = reviews.state("shout", FIRST.version).manifest
    assert reviews.approve(FIRST, "ann", manifest=read).state == "active"


def approve_in_turn(report: Report, folder: Path, versions: list[str], rounds: int) -> None:
    """Approve one version after the other, and report each decision after it was made."""
    with Record(folder / "record") as record:
        store = TinyToolStore(folder / "tools")
        reviews = Reviews(record, store)
        for i in range(rounds):
            reviews.approve(store.load("shout", versions[i % 2]), "ann")
            report(i)


@pytest.mark.slow
def test_at_most_one_version_is_active_however_many_processes_decide(
    reviews: Reviews, store: TinyToolStore, tmp_path: Path
) -> None:
    store.save(SECOND)
    both = [FIRST.version, SECOND.version]
    children = [Child(approve_in_turn, tmp_path, each, 40) for each in (both, both[::-1])]
    assert [len(child.rest()) for child in children] == [40, 40]
    assert sorted(states(reviews).values()) == ["active", "deprecated"]


def test_a_decision_that_was_reported_survives_a_kill(reviews: Reviews, store: TinyToolStore, tmp_path: Path) -> None:
    store.save(SECOND)
    both = [FIRST.version, SECOND.version]
    child = Child(approve_in_turn, tmp_path, both, 10_000)
    heard = [child.hear() for _ in range(5)]
    child.kill()
    assert heard == [0, 1, 2, 3, 4]
    entries = [e.data["version"] for e in Record(tmp_path / "record").entries(["review"])]
    assert entries[:5] == [both[i % 2] for i in range(5)]
    assert reviews.active() == {"shout": entries[-1]}


def test_the_last_approved_version_is_found_however_many_follow(reviews: Reviews, store: TinyToolStore) -> None:
    reviews.approve(FIRST, "ann")
    for i in range(MAX_VERSIONS + 1):
        store.save(make(text=f"a * {i}"))
    newest = store.load("shout").version
    assert FIRST.version not in [s.version for s in reviews.all("shout")]
    found = reviews.last_approved("shout", newest)
    assert found is not None
    assert found.version == FIRST.version
    assert reviews.last_approved("shout", FIRST.version) is None


def test_a_version_that_nobody_has_read_was_not_approved_last(reviews: Reviews, store: TinyToolStore) -> None:
    reviews.approve(FIRST, BY_RULES)
    store.save(SECOND)
    assert reviews.last_approved("shout", SECOND.version) is None


def test_an_approval_does_not_replace_a_refusal_that_its_reviewer_has_not_seen(reviews: Reviews) -> None:
    reviews.reject("shout", FIRST.version, "bob", "it sends data")
    with pytest.raises(Failure, match="is revoked, not pending"):
        reviews.approve(FIRST, "ann", seen="pending")
    assert reviews.approve(FIRST, "ann", seen="revoked").state == "active"
    assert reviews.approve(FIRST, "bob", seen="pending").state == "active"


def test_the_rules_replace_no_version_that_a_person_has_approved(reviews: Reviews, store: TinyToolStore) -> None:
    reviews.approve(FIRST, "ann")
    store.save(SECOND)
    with pytest.raises(Failure, match="a person has approved another version"):
        reviews.approve(SECOND, BY_RULES)
    assert states(reviews) == {"second": "pending", "first": "active"}
