"""``albert ledger``: the ledger contains every call and no secret, and verification finds a changed byte."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from blake3 import blake3

from albert_tools import SyncToolService
from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record.record import Record
from albert_tools.surfaces.wire.malformed import MalformedRequests
from tests.helpers.altered import altered

from .conftest import Albert


def entries_of(albert: Albert) -> list[Entry]:
    with Record(albert.home / "state" / "record") as record:
        return list(record.entries())


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
    assert albert("run", "nothing", "a=b").code == 3
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
    # The outcome of what takes long is an entry of its own, and otherwise in that of its call.
    outcomes = {e["call"]: e for e in entries if "ok" in e}
    entries = [e for e in entries if e["kind"] not in ("policy", "run", "result")]
    assert [e["kind"] for e in entries] == ["definition", "call", "call", "call", "denied", "denied", "mode"]
    outer, inner, write = entries[1:4]
    assert (outer["tool"], outer["arguments"], outer["verdict"]) == ("mine", {"path": "a.txt"}, "allow")
    assert (inner["tool"], inner["parent"], inner["call"]) == ("read_file", outer["call"], f"{outer['call']}:0")
    assert outcomes[inner["call"]]["effects"][0]["path"] == "a.txt"
    assert outcomes[outer["call"]]["result_hash"].startswith("b3:")
    written = outcomes[write["call"]]["effects"][0]
    assert (written["kind"], written["path"], written["size_bytes"]) == ("write", "b.txt", 35)
    assert (entries[4]["code"], entries[4]["rule_id"]) == ("permission_denied", "path_traversal")
    assert (entries[5]["tool"], entries[5]["code"], entries[5]["rule_id"]) == (
        "nothing",
        "unknown_tool",
        "unknown_tool",
    )
    assert (entries[6]["to"], entries[6]["cause"]) == ("ALERT", "a drill")
    assert "sk-abc" not in used("ledger", "export").out
    shown = used("ledger", "tail", "-n", "3").out
    assert shown.count("\n") == 3
    assert "✗ read_file: path: must not contain '..'" in shown


def test_a_query(used: Albert) -> None:
    of_one = used("ledger", "query", "--tool", "read_file", "--json").document()["entries"]
    assert [e["kind"] for e in of_one if e["kind"] != "result"] == ["call", "denied"]
    assert [e["kind"] for e in used("ledger", "query", "--denied", "--json").document()["entries"]] == ["denied"] * 2
    assert used("ledger", "query", "--since", "2999-01-01", "--json").document()["entries"] == []
    assert used("ledger", "query", "--since", "soon").code == 2
    assert used("ledger", "query", "--since", "2h", "--denied", "--json").document()["entries"]
    # Filters apply before the number of entries.
    last = used("ledger", "tail", "--tool", "read_file", "-n", "2", "--json").document()["entries"]
    assert last == of_one[-2:]
    assert used("ledger", "query", "--denied", "--lines", "3").out.count("\n") == 2
    assert used("ledger", "tail", "--denied").out.count("\n") == 2
    refused = used("ledger", "verify", "--denied")
    assert (refused.code, "ledger verify takes no --denied" in refused.err) == (2, True)


def test_a_changed_entry_is_found_and_switches_to_lockdown(used: Albert) -> None:
    used.write("anchor.json", used("ledger", "anchor").out)
    assert used("ledger", "verify", "--anchor", "anchor.json").code == 0
    whole = used("ledger", "verify")
    assert (whole.code, whole.out.splitlines()[0]) == (0, f"the ledger is intact: {len(entries_of(used))} entries")
    victim = next(e.n for e in entries_of(used) if e.kind == "call" and e.data["arguments"].get("path") == "b.txt")
    altered(used.home, "UPDATE entries SET data = replace(data, 'b.txt', 'c.txt') WHERE n = ?", victim)
    found = used("ledger", "verify")
    assert found.code == 1
    assert f"✗ entry {victim} was changed: its content does not match its hash" in found.out
    assert "the mode is LOCKDOWN now" in found.out
    assert used("run", "list_directory").code == 3
    assert used("mode", "RECOVERY").code == 0
    assert used("ledger", "verify", "--json").document()["locked"] is False


def test_an_anchor_shows_an_end_that_was_cut_off(used: Albert) -> None:
    used.write("anchor.json", used("ledger", "anchor").out)
    last = entries_of(used)[-1].n
    assert entries_of(used)[-1].kind == "mode"
    altered(used.home, "DELETE FROM entries WHERE n = ?", last)
    (used.home / "state" / "record" / "gate").unlink()  # as after a restart of the machine
    assert used("ledger", "verify").code == 0
    cut = used("ledger", "verify", "--anchor", "anchor.json")
    assert cut.code == 1
    assert (
        f"ends after entry {last - 1}, and entry {last} existed when the anchor was made: the end was cut off"
        in cut.out
    )
    assert used("ledger", "verify", "--anchor", "nothing.json").code == 2


def test_anybody_can_check_an_export(used: Albert) -> None:
    lines = used("ledger", "export").out.splitlines()
    before = bytes(32)
    for line in lines:
        digest, _, text = line.partition(" ")
        before = blake3(before + text.encode()).digest()
        assert before.hex() == digest
    assert [json.loads(line[65:])["n"] for line in lines] == list(range(1, len(lines) + 1))
    assert used("ledger", "export", "--since", "2999-01-01").out == ""
    used.write("export.txt", "\n".join(lines))
    assert used("ledger", "verify", "--file", "export.txt").out == (
        f"the file is intact: {len(lines)} entries\nentries that were cut off at its end can't be seen\n"
    )
    used.write("export.txt", "\n".join(lines[2:]))
    assert (
        "entry 3, the first one, can't be checked; entries that" in used("ledger", "verify", "--file", "export.txt").out
    )
    used.write("export.txt", "\n".join([*lines[:3], *lines[4:]]))
    assert (
        "✗ line 4 was changed, or lines before it are missing" in used("ledger", "verify", "--file", "export.txt").out
    )
    used.write("export.txt", "\n".join(lines).replace("b.txt", "c.txt", 1))
    assert used("ledger", "verify", "--file", "export.txt").code == 1
    assert used("ledger", "verify", "--file", "nothing.txt").code == 2


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
    assert len(lines) == 4


def test_trim_deletes_old_entries(albert: Albert) -> None:
    before = datetime.now(UTC) - timedelta(days=40)
    with Record(albert.home / "state" / "record", nanoseconds=lambda: int(before.timestamp() * 1e9)) as record:
        record.append("call", {"call": "c", "tool": "ancient", "verdict": "allow"})
        record.append("mode", {"from": "NORMAL", "to": "ALERT", "by": "ada"})
    assert albert("mode", "ALERT").code == 0
    assert albert("ledger", "trim").code == 2
    assert "records: {keep_days: 90}" in albert("ledger", "trim").err
    assert albert("ledger", "trim", "--older-than", "2h").code == 2
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text("records: {keep_days: 60}\n")
    assert albert("ledger", "trim").out == "nothing to delete: no entry is older than 60 days\n"
    rules.write_text("records: {keep_days: 0}\n")
    assert albert("ledger", "trim").code == 3
    rules.unlink()
    albert.write("anchor.json", albert("ledger", "anchor").out)
    trimmed = albert("ledger", "trim", "--older-than", "30d")
    assert (trimmed.code, trimmed.out.split(";")[0]) == (0, "deleted 2 entries")
    entries = albert("ledger", "tail", "--json").document()["entries"]
    assert [(e["n"], e["kind"]) for e in entries] == [(3, "mode"), (4, "checkpoint")]
    assert "ancient" not in albert("ledger", "query").out
    verified = albert("ledger", "verify")
    assert (verified.code, "Entries 1 to 2 were deleted" in " ".join(verified.out.split())) == (0, True)
    assert albert("ledger", "verify", "--anchor", "anchor.json").code == 0
    altered(albert.home, "UPDATE entries SET data = replace(data, '\"last\":2', '\"last\":1') WHERE n = 4")
    assert albert("ledger", "verify").code == 1


def test_the_requests_of_a_trace(used: Albert) -> None:
    done = used("run", "mine", "path=a.txt", "--json").document()
    found = used("ledger", "query", "--trace", done["trace_id"], "--json").document()["entries"]
    assert [(e["kind"], e["tool"]) for e in found if e["kind"] != "result"] == [
        ("run", "mine"),
        ("call", "mine"),
        ("call", "read_file"),
        ("run", "mine"),
    ]
    assert found[1]["trace"].split("-")[1] == done["trace_id"]
    # The entries of each request have a trace of its own, those of refused requests too.
    entries = used("ledger", "query", "--json").document()["entries"]
    traces = [e["trace"] for e in entries if e["kind"] in ("call", "denied") and "parent" not in e]
    assert len({*traces}) == len(traces) == 5
    # A caller's trace is kept.
    theirs = f"00-{'a1' * 16}-{'b2' * 8}-01"
    with SyncToolService.open(home=used.home, workspace=used.project) as service:
        service.invoke("read_file", {"path": "a.txt"}, trace=theirs)
        service.invoke("current_time", trace=theirs)
    for given in (theirs, "a1" * 16, "A1" * 16):
        lines = used("ledger", "query", "--trace", given).out.splitlines()
        assert [line.split()[4].partition("(")[0] for line in lines] == ["read_file", "current_time"]
    assert len(used("ledger", "query", "--trace", theirs, "--tool", "read_file").out.splitlines()) == 1
    assert used("ledger", "query", "--trace", "c3" * 16).out == ""
    # So has a request that waits for an answer, or for a worker.
    with SyncToolService.open(home=used.home, workspace=used.project) as service:
        assert service.invoke("bash", {"command": "make all"}, trace="d4" * 16).error.code == "suspended"
        service.enqueue("mine", {"path": "a.txt"}, trace="e5" * 16)
    for given, kind in (("d4", "asked"), ("e5", "queued")):
        found = used("ledger", "query", "--trace", given * 16, "--json").document()["entries"]
        assert kind in [entry["kind"] for entry in found]
    wrong = used("ledger", "query", "--trace", "yesterday")
    assert (wrong.code, "is not a trace" in wrong.err) == (2, True)
    assert used("ledger", "verify", "--trace", theirs).code == 2


def test_a_resumed_run_is_in_the_trace_of_its_request(albert: Albert) -> None:
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("tools: {write_file: {requires_approval_in_modes: [NORMAL]}}\n")
    albert.write("save.tool", 'def save() -> None:\n    """Save."""\n    tools.write_file(path="a", content="b")\n')
    assert albert("define", "save.tool").code == 0
    for words in (["save"], ["write_file", "path=c", "content=d"]):
        waits = albert("run", *words, "--json").document()
        assert waits["error"]["code"] == "suspended"
        approval = waits["error"]["details"]["approval"]
        # The same request by hand asks no second question. The trace is in the ledger nevertheless.
        again = albert("run", *words, "--json").document()
        found = albert("ledger", "query", "--trace", again["trace_id"], "--json").document()["entries"]
        assert [e.get("state") for e in found if e["kind"] == "run"] == ["begun", "suspended"]
        done = albert("approvals", "answer", approval, "once", "--resume", "--json")
        assert done.code == 0
        found = albert("ledger", "query", "--trace", waits["trace_id"], "--json").document()["entries"]
        kinds = [e["kind"] for e in found]
        assert {"asked", "call", "run", "result"} <= {*kinds}
        assert kinds.index("asked") < len(kinds) - 1 - kinds[::-1].index("call")


def test_malformed_requests_are_shown(used: Albert) -> None:
    with Record(used.home / "state" / "record") as record:
        requests = MalformedRequests(record)
        requests.record(b"junk", [], None)
        requests.record(b"more", ["request_id max_len\n✓ forged", "tool required"], None)
    for words in (["tail", "-n", "2"], ["query", "--denied", "-n", "2"]):
        first, second = used("ledger", *words).out.splitlines()
        hashed = f"b3:{blake3(b'junk').hexdigest()}"
        assert first.endswith(f"✗ malformed request, 4 bytes, {hashed[:15]}: it can not be parsed")
        assert second.endswith(": request_id max_len\\n✓ forged, tool required")
    entries = used("ledger", "query", "--denied", "--json").document()["entries"]
    assert [e["kind"] for e in entries] == ["denied", "denied", "malformed", "malformed"]


def test_a_review_by_the_rules_shows_the_user_of_the_database(albert: Albert) -> None:
    with Record(albert.home / "state" / "record") as record:
        review = {"tool": "t", "version": "v", "state": "active", "why": "read-only", "manifest": "m"}
        record.append("review", {**review, "by": "the rules", "user": "ben"})
    assert albert("ledger", "tail").out.endswith(" t is active, by the rules: read-only (user ben)\n")
