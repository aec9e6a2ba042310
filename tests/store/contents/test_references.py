"""A value that any record references is never collected, whatever form the record has."""

from __future__ import annotations

from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.references import named, texts_in
from albert_tools.store.record import record as module
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from tests.helpers.altered import altered
from tests.helpers.begun_runs import begun


def test_values_that_the_ledger_or_a_run_references_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENTRIES_AFTER", module._ENTRIES_AFTER.replace("LIMIT 1000", "LIMIT 2"))
    contents, record = Contents(tmp_path / "contents"), Record(tmp_path / "state" / "record")
    assert named(record.texts(), texts_in(tmp_path / "nowhere")) == set()
    refs = [contents.put(b"value %d" % i) for i in range(40)]
    for ref in refs[:3]:
        record.append("response", {"output": {"deep": [f"see {ref}, please"]}})
    for run, several in (("0" * 16, refs[3:30]), ("1" * 16, refs[30:32])):
        journal = begun(Runs(record), run, {"source": several[0]})
        for ref in several[1:]:
            journal.append({"result": {ref: 1}})
        journal.close()
    # A damaged row counts too.
    altered(tmp_path, "UPDATE steps SET data = ? WHERE run = ? AND seq = 1", f'{{"half":"{refs[32]}', "1" * 16)
    artifact = tmp_path / "artifacts" / "a" / "b"
    artifact.parent.mkdir(parents=True)
    artifact.write_bytes(b"\xff" + refs[33].encode() + b"\n")
    kept = {*refs[:31], *refs[32:34]}
    assert named(record.texts(), texts_in(tmp_path / "artifacts")) == kept
    found = contents.collect(named(record.texts(), texts_in(tmp_path / "artifacts")), older_than_seconds=0)
    assert (found.taken, found.left) == (7, 33)
    for i, ref in enumerate(refs):
        if ref in kept:
            assert contents.get(ref) == b"value %d" % i


@pytest.mark.parametrize("what", ["a link", "a row that is not text"])
def test_a_record_that_cannot_be_read_stops_the_search(tmp_path: Path, what: str) -> None:
    record = Record(tmp_path / "state" / "record")
    record.append("a", {})
    assert named(record.texts(), texts_in(tmp_path / "artifacts")) == set()
    if what == "a link":
        (tmp_path / "artifacts").mkdir()
        (tmp_path / "artifacts" / "a").symlink_to("nowhere")
    else:
        altered(tmp_path, "UPDATE entries SET data = CAST(x'ff' AS TEXT)")
    with pytest.raises(Failure) as caught:
        named(record.texts(), texts_in(tmp_path / "artifacts"))
    assert caught.value.code in ("io_error", "damaged")
