"""A value that any record references is never collected, whatever form the record has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.contents import references as module
from albert_tools.store.contents.content_store import Contents
from albert_tools.store.contents.references import named
from albert_tools.store.record.record import Record
from albert_tools.store.runs import Runs


def test_values_that_the_log_or_a_run_references_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 100)  # some references cross the bounds of the blocks
    contents, log, runs = Contents(tmp_path / "contents"), Record(tmp_path / "record"), Runs(tmp_path / "runs")
    refs = [contents.put(b"value %d" % i) for i in range(12)]
    for ref in refs[:3]:
        log.append("response", {"output": {"deep": [f"see {ref}, please"]}})
    journal = runs.create("0" * 16, {"source": refs[3]})
    journal.append({"result": {"ref": refs[4]}, "pad": "x" * 77})
    journal.append({refs[5]: refs[6]})
    journal.close()
    (torn,) = runs.folder.glob("*/*.jsonl")
    with torn.open("ab") as file:
        file.write(b'0123 {"torn":"' + refs[7].encode())
    assert named(log.folder, runs.folder, tmp_path / "nowhere") == set(refs[:8])
    found = contents.collect(named(log.folder, runs.folder), older_than_seconds=0)
    assert (found.taken, found.left) == (4, 8)
    for i, ref in enumerate(refs[:8]):
        assert contents.get(ref) == b"value %d" % i


def test_a_record_that_cannot_be_read_stops_the_search(tmp_path: Path) -> None:
    log = Record(tmp_path / "record")
    log.append("a", {})
    (log.folder / "20260131T080000.000001Z-1-00000000.log").symlink_to("nowhere")
    with pytest.raises(Failure) as caught:
        named(log.folder)
    assert caught.value.code == "io_error"
    os.unlink(log.folder / "20260131T080000.000001Z-1-00000000.log")
    assert named(log.folder) == set()
