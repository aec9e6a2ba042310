"""After old entries are deleted, decisions are the same, and the record can still be verified."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.authority.approvals import Approvals
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record import repeats, retention, uses
from albert_tools.store.record.record import Record
from albert_tools.store.record.retention import Trimmed, trim
from albert_tools.store.record.schema import STATE_TABLES
from albert_tools.store.record.verify import make_anchor, verify
from tests.store.record.conftest import Place, Tamper, another
from tests.store.record.test_tables import Life


def rows(record: Record) -> dict[str, list[Any]]:
    return {table: sorted(record.database.rows(f"SELECT * FROM {table}")) for table in STATE_TABLES}


def moment(life: Life) -> datetime:
    """The time of the newest entry."""
    return datetime.fromisoformat(life.record.database.rows("SELECT max(at) FROM entries")[0][0])


@pytest.mark.parametrize(
    ("place", "seed", "part_bytes"),
    [
        *(("folder", 0, size) for size in (500, 256 * 1024)),
        *(pytest.param("folder", seed, 500, marks=pytest.mark.slow) for seed in range(1, 10)),
        pytest.param("url", 0, 500, marks=pytest.mark.slow),
    ],
    indirect=["place"],
)
def test_a_trimmed_record_has_the_same_state_and_is_valid(
    place: Place, seed: int, part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "MAX_KEYS", 10)
    monkeypatch.setattr(uses, "_PRUNED_EACH", 4)
    monkeypatch.setattr(retention, "BATCH", 20)
    monkeypatch.setattr(retention, "_PART_BYTES", part_bytes)
    life = Life(place, seed)
    times = []
    for _ in range(6):
        for _ in range(40):
            life.step()
        life.now += 50_000
        times.append(moment(life))
        record = life.record
        before, approvals = rows(record), Approvals(record, life.clock)
        live = approvals.all(("open", "yes", "no", "standing"))
        trim(record, times[-2] if len(times) > 1 else times[0])
        after = rows(record)
        # Only closed questions, old keys, and what sessions that are over could read are gone.
        assert approvals.all(("open", "yes", "no", "standing")) == live
        for table in set(STATE_TABLES) - {"approvals", "repeats", "stored"}:
            assert after[table] == before[table], table
        for table in ("approvals", "repeats", "stored"):
            assert set(after[table]) <= set(before[table])
        assert verify(place).problems == ()
    first = record.database.rows("SELECT min(n) FROM entries")[0][0]
    assert first > 50
    assert verify(place).trimmed == first - 1
    for record in life.records:
        record.close()


def old(place: Place, count: int) -> datetime:
    """Append old entries. Returns a later time, which is earlier than now."""
    with Record(place, nanoseconds=lambda: 1_700_000_000_000_000_000) as record, record.transaction():
        for i in range(count):
            record.append("call", {"call": str(i)})
    return datetime(2024, 1, 1, tzinfo=UTC)


def test_newer_entries_stay(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 10)
    until = old(place, 25)
    with Record(place) as record:
        assert trim(Record(another(place)), until) == Trimmed(0, 0, 0)
        assert trim(record, datetime(2020, 1, 1, tzinfo=UTC)).entries == 0
        record.append("call", {"call": "new"})
        assert trim(record, until).entries == 25
        assert [(e.n, e.kind) for e in record.entries()] == [(26, "call"), *((n, "checkpoint") for n in (27, 28, 29))]
        assert trim(record, until).entries == 0
        assert record.append("call", {}) == 30
    found = verify(place)
    assert (found.problems, found.trimmed, found.entries) == ((), 25, 5)
    assert "Entries 1 to 25 were deleted" in found.unseen


def test_all_entries_can_be_deleted_but_not_the_checkpoint(folder: Path) -> None:
    until = old(folder, 25)
    with Record(folder) as record:
        assert trim(record, datetime(2999, 1, 1, tzinfo=UTC)).entries == 25
        assert [(e.n, e.kind) for e in record.entries()] == [(26, "checkpoint")]
        assert until
    assert verify(folder).ok


def test_deleted_entries_are_overwritten_and_their_space_is_given_back(folder: Path) -> None:
    with Record(folder, nanoseconds=lambda: 1_700_000_000_000_000_000) as record, record.transaction():
        for i in range(2000):
            record.append("call", {"call": str(i), "text": "top secret " * 20})
    with Record(folder) as record:
        found = trim(record, datetime(2024, 1, 1, tzinfo=UTC))
    assert found.after < found.before / 4
    assert b"top secret" not in b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM entries WHERE kind = 'checkpoint' AND n < 29", "the checkpoint after entry 25 is incomplete"),
        ("DELETE FROM entries WHERE kind = 'checkpoint'", "entries 1 to 25 are missing"),
        ("DELETE FROM entries WHERE n < 28", "entries 26 to 27 are missing"),
        ("DELETE FROM entries WHERE n = 28", "the checkpoint after entry 25 is incomplete"),
    ],
)
def test_a_checkpoint_can_not_be_changed(
    folder: Path, tamper: Tamper, monkeypatch: pytest.MonkeyPatch, statement: str, problem: str
) -> None:
    monkeypatch.setattr(retention, "_PART_BYTES", 1)
    with Record(folder, nanoseconds=lambda: 1_700_000_000_000_000_000) as record:
        for i in range(3):
            key = {"key": str(i), "seq": i, "digest": "d", "run": "r", "owner": "o"}
            record.append("repeat", {**key, "state": "begun"})
        for i in range(22):
            record.append(
                "asked",
                {"approval": str(i), "action": "a", "run": "", "step": ""}
                if i < 3
                else {"i": i, "approval": f"x{i}", "action": "b", "run": "", "step": ""},
            )
    with Record(folder) as record:
        record.append("call", {"call": "new"})
        trim(record, datetime(2024, 1, 1, tzinfo=UTC))
        parts = [e.n for e in record.entries({"checkpoint"})]
        assert parts[0] == 27
        assert len(parts) == 25
    assert verify(folder).ok
    tamper(statement)
    assert problem in verify(folder).problems[0]


def test_a_damaged_record_is_not_trimmed(place: Place, tamper: Tamper) -> None:
    until = old(place, 25)
    tamper("UPDATE entries SET kind = 'other' WHERE n = 20")
    with Record(place) as record:
        with pytest.raises(Failure, match="nothing is deleted, because the record is not valid: entry 20") as caught:
            trim(record, until)
        assert caught.value.code == "damaged"
        assert len(list(record.entries())) == 25


def test_an_anchor_older_than_the_checkpoint_proves_nothing_and_says_so(folder: Path) -> None:
    until = old(folder, 25)
    with Record(folder) as record:
        anchor = make_anchor(record)
        assert verify(folder, anchor).ok
        record.append("call", {})
        trim(record, until)
    found = verify(folder, {**anchor, "n": 3})
    assert found.ok
    assert "The anchor's entry 3 was deleted" in found.unseen
    assert "Make a new anchor." in found.unseen


def test_an_interrupted_trim_leaves_a_valid_record(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 10)
    until = old(place, 25)
    appended = []
    real = Record.append

    def append(self: Record, kind: str, data: dict[str, Any]) -> int:
        appended.append(kind)
        if len(appended) == 2:
            raise KeyboardInterrupt
        return real(self, kind, data)

    with Record(place) as record:
        with monkeypatch.context() as patch:
            patch.setattr(Record, "append", append)
            with pytest.raises(KeyboardInterrupt):
                trim(record, until)
        assert verify(place).ok
        assert verify(place).trimmed == 10
        assert trim(record, until).entries == 15
    assert verify(place).ok
