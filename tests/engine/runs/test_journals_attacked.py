"""Forged journals, with and without a valid chain. The service does not crash, and does only what the rules allow."""

from __future__ import annotations

import itertools
import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Failure, SyncToolService
from albert_tools.engine.model.error_codes import CODES
from tests.helpers.altered import altered
from tests.helpers.forged import Edit, forged_journal, forged_record, steps_of

ASKS: dict[str, Any] = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}}
ODD: list[Any] = [None, 7, -1.5, True, "", "x", "\0", [], [1], {}, {"a": {}}, "b3:" + "0" * 64, "../../etc/passwd"]


class Waiting:
    """A run that has written one file and waits for permission to write the second."""

    def __init__(self, bench: Any, token: str | None = None) -> None:
        self.bench = bench
        bench.define('return [tools.write_file(path=p, content="x")["path"] for p in ["a", "b"]]')
        self.run = bench.service.invoke("t", session=token).run_id
        self.answer()
        assert bench.service.resume(self.run).error.code == "suspended"
        self.steps = steps_of(bench.home, self.run)

    def restore(self) -> None:
        """Undo all forgeries."""
        forged_record(self.bench.home, self.run, lambda steps: self.steps)

    def forge_journal(self, edit: Edit) -> None:
        forged_journal(self.bench.home, self.run, edit)

    def forge_record(self, edit: Edit) -> None:
        self.restore()
        forged_record(self.bench.home, self.run, edit)

    def answer(self) -> None:
        question = self.bench.service.within(lambda s: s.approvals.all(("open",)))[-1]
        self.bench.service.within(lambda s: s.approvals.answer(question.id, "once", "ada"))

    def code(self, work: str = "resume") -> str | None:
        """Return the code of the failure. It must be a known code."""
        service = self.bench.service
        try:
            if work == "show":
                service.within(lambda s: s.runs.show(self.run).as_dict())
                return None
            if work == "cancel":
                service.within(lambda s: s.runs.cancel(self.run, "ada"))
                return None
            if work == "replay":
                result = service._wait(service.service.runs.replay(self.run))
            else:
                result = service.resume(self.run)
        except Failure as failure:
            return failure.code
        json.dumps(result.as_dict())
        return result.error.code if result.error is not None else None


@pytest.fixture
def waiting(make_bench: Any) -> Waiting:
    return Waiting(make_bench(governance=ASKS))


def test_a_change_without_a_new_chain_is_found(waiting: Waiting) -> None:
    home, run, last = waiting.bench.home, waiting.run, len(waiting.steps) - 1
    for seq in range(last + 1):
        ((data,),) = altered(home, "SELECT data FROM steps WHERE run = ? AND seq = ?", run, seq)
        for place in range(0, len(data), 97):
            changed = data[:place] + chr(ord(data[place]) ^ 1) + data[place + 1 :]
            altered(home, "UPDATE steps SET data = ? WHERE run = ? AND seq = ?", changed, run, seq)
            for work in ("show", "resume", "replay", "cancel"):
                assert waiting.code(work) == "damaged"
        altered(home, "UPDATE steps SET data = ? WHERE run = ? AND seq = ?", data, run, seq)
    for seq in range(last + 1):
        altered(home, "UPDATE steps SET seq = seq + 100 WHERE run = ? AND seq = ?", run, seq)
        assert waiting.code() == "damaged"
        altered(home, "UPDATE steps SET seq = seq - 100 WHERE run = ? AND seq = ?", run, seq + 100)
    assert waiting.code("show") is None
    assert sorted(p.name for p in waiting.bench.work.iterdir()) == [".albert", "a"]


FIELDS = "tool version kind arguments workspace session principal request_id trace repeat reason journal language python platform"


@pytest.mark.parametrize("field", FIELDS.split())
def test_forged_headers(waiting: Waiting, field: str) -> None:
    for value in ODD:
        waiting.forge_record(lambda steps, v=value: steps[0].update({field: v}))
        for work in ("show", "replay", "resume"):
            code = waiting.code(work)
            assert code is None or code in CODES
    waiting.forge_record(lambda steps: [steps[0].pop(field), None][1])
    assert waiting.code() in ("damaged", "diverged")
    assert not (waiting.bench.work / "b").exists()


def test_forged_entries(waiting: Waiting) -> None:
    """None is continued. One that has the form of an entry can be shown."""
    for number, entry in enumerate(waiting.steps[1:], 1):
        for field, value in itertools.product(entry, [None, 7, "x", [1], {"a": {}}, "gone"]):
            forged = {name: part for name, part in {**entry, field: value}.items() if part != "gone"}
            if forged == entry:
                continue
            waiting.forge_journal(lambda _, n=number, e=forged: [*waiting.steps[:n], e, *waiting.steps[n + 1 :]])
            assert waiting.code("resume") == "damaged", (number, field, value)
            assert waiting.code("show") in (None, "damaged"), (number, field, value)
    assert not (waiting.bench.work / "b").exists()


@pytest.mark.parametrize("field", ["details", "code", "message", "source", "tool"])
def test_forged_failures(waiting: Waiting, field: str) -> None:
    for value in [*ODD, {"trail": [{}]}, {"trail": 1}, {"line": 3}, "suspended", "cancelled", "exception"]:

        def edit(found: list[Any], v: Any = value) -> None:
            for entry in found:
                if entry.get("t") == "end":
                    del entry["value"]
                    entry["error"] = {"code": "io_error", "message": "m", "details": {}, field: v}

        waiting.forge_record(edit)
        for work in ("show", "replay", "resume"):
            code = waiting.code(work)
            assert code is None or code in CODES
    assert not (waiting.bench.work / "b").exists()


def test_a_removed_step_is_found(waiting: Waiting) -> None:
    waiting.forge_journal(lambda entries: [e for e in entries if e.get("t") not in ("begin", "end")])
    (waiting.bench.work / "a").write_text("since then")
    assert waiting.code() == "damaged"
    assert (waiting.bench.work / "a").read_text() == "since then"


def test_an_added_step_is_found(waiting: Waiting) -> None:
    """The ledger does not name a forged step, even if the chain of the steps is valid."""

    def edit(entries: list[Any]) -> None:
        for kind in ("begin", "end"):
            found = next(e for e in entries if e.get("t") == kind)
            arguments = {"path": "b", "content": "x"}
            entries.append({**found, "step": "1", **({"arguments": arguments} if kind == "begin" else {})})

    waiting.forge_journal(edit)
    assert waiting.code() == "damaged"
    assert not (waiting.bench.work / "b").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"value": {"path": "elsewhere", "size_bytes": 1, "sha256": "0" * 64}},
        {"error": {"code": "io_error", "message": "it failed"}},
    ],
)
def test_a_changed_result_is_found(waiting: Waiting, change: Any) -> None:
    def edit(entries: list[Any]) -> None:
        (end,) = (e for e in entries if e.get("t") == "end")
        if "error" in change:
            del end["value"]
        end.update(change)

    waiting.forge_journal(edit)
    assert waiting.code() == "damaged"
    # The original journal can be resumed.
    waiting.forge_journal(lambda steps: waiting.steps)
    waiting.answer()
    assert waiting.code() is None


def test_a_forged_read_is_found(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS)
    (bench.work / "secret").write_text("true")
    bench.define('text = tools.read_file(path="secret")\n    return tools.write_file(path=text, content="x")["path"]')
    run = bench.service.invoke("t").run_id

    def made_up(entries: list[Any]) -> list[Any]:
        (end,) = (e for e in entries if e.get("t") == "end")
        return [e for e in entries if e is not end and e.get("t") != "ask"] + [{**end, "value": "false"}]

    for edit in (made_up, lambda entries: [e for e in entries if e.get("t") != "end"]):
        forged_journal(bench.home, run, edit)
        with pytest.raises(Failure) as caught:
            bench.service.resume(run)
        assert caught.value.code == "damaged"


def test_changed_arguments_diverge(waiting: Waiting) -> None:
    def edit(entries: list[Any]) -> None:
        for entry in entries:
            if entry.get("t") in ("begin", "end") and "arguments" in entry:
                entry["arguments"] = {"path": "c", "content": "x"}

    waiting.forge_record(edit)
    waiting.answer()
    assert waiting.code() == "diverged"
    assert not (waiting.bench.work / "b").exists()


def test_a_forged_approval_allows_nothing(waiting: Waiting) -> None:
    rules = {"tools": {"t": {"requires_approval_in_modes": ["NORMAL"]}}}
    with waiting.bench.again(governance=rules) as strict:
        for approval in ("0" * 12, waiting.run, "", None):
            waiting.forge_record(
                lambda entries, a=approval: [e.update(approval=a) for e in entries if e.get("t") == "enter"] and None
            )
            result = strict.resume(waiting.run)
            assert (result.error.code, result.error.tool) == ("suspended", "t")
    assert not (waiting.bench.work / "b").exists()


def test_a_forged_session_gives_no_access(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS)
    narrow, token = bench.service.within(lambda s: s.open_session("narrow", tools=["t", "write_file"]))
    wide, _ = bench.service.within(lambda s: s.open_session("wide"))
    waiting = Waiting(bench, token)
    other = Waiting(bench, bench.service.within(lambda s: s.open_session("other"))[1])
    grants = [
        s.id for s in bench.service.within(lambda s: s.sessions.all()) if s.grant and s.client == f"run {other.run}"
    ]
    for grant in (*grants, "nobody", narrow.client):

        def edit(entries: list[Any], g: str = grant) -> None:
            for entry in entries:
                if entry.get("t") == "state" and "grant" in entry:
                    entry["grant"] = g

        waiting.forge_record(edit)
        assert waiting.code() == "permission_denied"
    assert wide.id not in grants
    assert not (bench.work / "b").exists()


def test_a_run_of_another_workspace_diverges(waiting: Waiting, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / ".albert").mkdir(parents=True)
    place = {"home": waiting.bench.home, "workspace": tmp_path / "elsewhere"}
    with SyncToolService.open(**place, governance=ASKS) as other, pytest.raises(Failure) as caught:
        other.resume(waiting.run)
    assert caught.value.code == "diverged"
    waiting.forge_record(lambda entries: entries[0].update(python="2.7.18"))
    assert waiting.code() == "diverged"


def test_a_replay_of_a_primitive_does_not_call_it(make_bench: Any) -> None:
    bench = make_bench()
    result = bench.service.invoke("write_file", {"path": "a", "content": "x"}, dedupe_key="k")
    (bench.work / "a").write_text("since then")
    again = bench.service._wait(bench.service.service.runs.replay(result.run_id))
    assert again.value() == result.value()
    assert (bench.work / "a").read_text() == "since then"
    # A header that exchanges primitive and composite is refused.
    forged_record(bench.home, result.run_id, lambda entries: entries[0].update(kind="composite"))
    with pytest.raises(Failure):
        bench.service._wait(bench.service.service.runs.replay(result.run_id))
    assert (bench.work / "a").read_text() == "since then"


def test_a_repeat_checks_the_journal(make_bench: Any) -> None:
    bench = make_bench()
    first = bench.service.invoke("list_directory", dedupe_key="k")
    steps = steps_of(bench.home, first.run_id)
    for field in ("error", "effects", "value", "state", "log", "calls", "policy"):
        for value in ODD:
            forged_record(bench.home, first.run_id, lambda _, f=field, v=value: [*steps[:-1], {**steps[-1], f: v}])
            result = bench.service.invoke("list_directory", dedupe_key="k")
            json.dumps(result.as_dict())
            assert result.ok or result.error.code in CODES


DEEP = reduce(lambda inner, _: [inner], range(900), [])


@pytest.mark.parametrize(
    ("value", "code"), [(DEEP, "invalid_result"), ("x" * 5_000_000, "exception")], ids=["deep", "large"]
)
def test_a_deep_or_large_result_of_a_step(waiting: Waiting, value: Any, code: str) -> None:
    waiting.forge_record(lambda steps: [s.update(value=value) for s in steps if s.get("t") == "end"] and None)
    assert waiting.code("show") is None
    # It is no result of the tool, or none that the program expects.
    assert [waiting.code(work) for work in ("resume", "replay")] == [code, code]
    assert not (waiting.bench.work / "b").exists()
