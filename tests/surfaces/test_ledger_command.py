"""``albert ledger``: the ledger contains every call and no secret, and verification finds a changed byte."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from albert_tools import SyncToolService
from albert_tools.store.record.record import Record

from .conftest import Albert


def segments(albert: Albert) -> list[Path]:
    return sorted((albert.home / "state" / "record").glob("*.log"))


@pytest.fixture(scope="module")
def used_once(tmp_path_factory: pytest.TempPathFactory) -> Albert:
    albert = Albert(tmp_path_factory.mktemp("used"))
    albert.write(
        "mine.tool", 'def mine(path: str) -> int:\n    """Count."""\n    return len(tools.read_file(path=path))\n'
    )
    albert.write("a.txt", "four")
    assert albert("define", "mine.tool").code == 0
    assert albert("run", "mine", "path=a.txt").code == 0
    assert albert("run", "write_file", "path=b.txt", "content=password: sk-abcdefghijklmnopqrstuv").code == 0
    assert albert("run", "read_file", "path=../x").code == 3
    assert albert("run", "nothing").code == 1
    assert albert("mode", "ALERT", "--cause", "a drill").code == 0
    return albert


@pytest.fixture
def used(albert: Albert, used_once: Albert) -> Albert:
    """A home with calls of every outcome."""
    shutil.copytree(used_once.home, albert.home)
    shutil.copytree(used_once.project, albert.project, dirs_exist_ok=True)
    return albert


def test_the_ledger_has_every_call_and_no_secret(used: Albert) -> None:
    entries = used("ledger", "tail", "--json").document()["entries"]
    assert [e["kind"] for e in entries if e["kind"] == "run"] == ["run", "run"]
    # Each process records the rules that it uses.
    assert [e["kind"] for e in entries].count("policy") >= 2
    entries = [e for e in entries if e["kind"] not in ("policy", "run")]
    assert [e["kind"] for e in entries] == (
        ["definition", "call", "call", "result", "result", "call", "result", "denied", "mode"]
    )
    outer, inner = entries[1], entries[2]
    assert (outer["tool"], outer["arguments"], outer["verdict"]) == ("mine", {"path": "a.txt"}, "allow")
    assert (inner["tool"], inner["parent"], inner["call"]) == ("read_file", outer["call"], f"{outer['call']}:0")
    assert entries[3]["effects"][0]["path"] == "a.txt"
    assert entries[4]["result_hash"].startswith("b3:")
    written = entries[6]["effects"][0]
    assert (written["kind"], written["path"], written["size_bytes"]) == ("write", "b.txt", 35)
    assert (entries[7]["code"], entries[7]["rule_id"]) == ("permission_denied", "path_traversal")
    assert (entries[8]["to"], entries[8]["cause"]) == ("ALERT", "a drill")
    assert all("sk-abc" not in path.read_text() for path in segments(used))
    shown = used("ledger", "tail", "-n", "3").out
    assert shown.count("\n") == 3
    assert "✗ read_file: path: must not contain '..'" in shown


def test_a_query(used: Albert) -> None:
    of_one = used("ledger", "query", "--tool", "read_file", "--json").document()["entries"]
    assert [e["kind"] for e in of_one] == ["call", "result", "denied"]
    assert [e["kind"] for e in used("ledger", "query", "--denied", "--json").document()["entries"]] == ["denied"]
    assert used("ledger", "query", "--since", "2999-01-01", "--json").document()["entries"] == []
    assert used("ledger", "query", "--since", "soon").code == 2
    assert used("ledger", "query", "--since", "2h", "--denied", "--json").document()["entries"]
    # Filters apply before the number of entries.
    last = used("ledger", "tail", "--tool", "read_file", "-n", "2", "--json").document()["entries"]
    assert [e["kind"] for e in last] == ["result", "denied"]
    assert used("ledger", "query", "--denied", "--lines", "3").out.count("\n") == 1
    assert used("ledger", "tail", "--denied").out.count("\n") == 1
    refused = used("ledger", "verify", "--denied")
    assert (refused.code, "ledger verify takes no --denied" in refused.err) == (2, True)


def test_a_changed_entry_is_found_and_switches_to_lockdown(used: Albert) -> None:
    kept = used("ledger", "anchor").out
    used.write("anchor.json", kept)
    assert used("ledger", "verify", "--anchor", "anchor.json").code == 0
    whole = used("ledger", "verify")
    assert (whole.code, whole.out.splitlines()[0]) == (0, "the ledger is intact: 18 entries")
    victim = next(path for path in segments(used) if b"b.txt" in path.read_bytes())
    victim.write_bytes(victim.read_bytes().replace(b'"path":"b.txt"', b'"path":"c.txt"', 1))
    found = used("ledger", "verify")
    assert found.code == 1
    assert f"✗ segment {victim.stem}, entry 2, byte " in found.out
    assert "the mode is LOCKDOWN now" in found.out
    assert used("run", "list_directory").code == 3
    assert used("mode", "RECOVERY").code == 0
    assert used("ledger", "verify", "--json").document()["locked"] is False


def test_an_anchor_shows_a_removed_segment(used: Albert) -> None:
    used.write("anchor.json", used("ledger", "anchor").out)
    segments(used)[0].unlink()
    assert used("ledger", "verify").code == 0
    assert used("ledger", "verify", "--anchor", "anchor.json").code == 1
    assert used("ledger", "verify", "--anchor", "nothing.json").code == 2


def test_a_call_that_can_not_be_recorded_is_denied(albert: Albert) -> None:
    (albert.home / "state").mkdir(parents=True)
    (albert.home / "state" / "record").write_text("in the way")
    done = albert("run", "write_file", "path=a", "content=b")
    assert done.code == 3
    assert done.err.startswith("error[governance_unavailable]: the call can't be recorded, so it is denied: ")
    assert not (albert.project / "a").exists()


def test_an_empty_ledger(albert: Albert) -> None:
    assert albert("ledger", "tail").out == ""
    assert albert("ledger", "verify").code == 0


def test_an_argument_can_not_forge_an_entry(albert: Albert) -> None:
    forged = "2026-01-01 00:00:00  abc  ✓ bash(command=1)"
    with SyncToolService.open(home=albert.home, workspace=albert.project) as service:
        for name, arguments in (
            ("read_file", {f"x\n{forged}": 1}),
            (f"x\n{forged}", {}),
            ("read_file", {"path": f"x\n{forged}"}),
        ):
            assert not service.invoke(name, arguments).ok
    lines = albert("ledger", "tail").out.splitlines()
    assert not [line for line in lines if line.startswith("2026-01-01")]
    assert len(lines) == 5


def test_fold_compacts_the_ledger(used: Albert) -> None:
    assert used("ledger", "fold").code == 2
    assert "records: {keep_days: 90}" in used("ledger", "fold").err
    assert used("ledger", "fold", "--older-than", "2h").code == 2
    rules = used.home / "config" / "governance.yaml"
    old = rules.read_text() if rules.exists() else ""
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(old + "\nrecords: {keep_days: 30}\n")
    assert used("ledger", "fold").out == "nothing to fold: no finished segment is older than 30 days\n"
    rules.write_text(old + "\nrecords: {keep_days: 0}\n")
    assert used("ledger", "fold").code == 3
    rules.write_text(old)
    before = datetime.now(UTC) - timedelta(days=40)
    with Record(used.home / "state" / "record", nanoseconds=lambda: int(before.timestamp() * 1e9)) as log:
        log.append("call", {"call": "c", "tool": "ancient", "verdict": "allow"})
        log.append("mode", {"from": "NORMAL", "to": "ALERT", "by": "ada"})
    folded = used("ledger", "fold", "--older-than", "30d")
    assert (folded.code, folded.out.split(",")[0].split(":")[0]) == (0, "folded 1 segment into one")
    assert "1 of 2 entries are kept" in folded.out
    entries = used("ledger", "tail", "--json").document()["entries"]
    assert [e["kind"] for e in entries].count("fold") == 1
    assert "ancient" not in used("ledger", "query").out
    verified = used("ledger", "verify")
    assert verified.code == 0
    assert "1 segments, begun from" in " ".join(verified.out.split())
