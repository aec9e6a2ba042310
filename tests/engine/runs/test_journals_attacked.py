"""Forged journals, with and without a valid chain. The service does not crash, and does only what the rules allow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Failure, SyncToolService
from albert_tools.engine.model.error_codes import CODES
from albert_tools.store.log import line

ASKS: dict[str, Any] = {"tools": {"write_file": {"requires_approval_in_modes": ["NORMAL"]}}}
ODD: list[Any] = [None, 7, -1.5, True, "", "x", "\0", [], [1], {}, {"a": {}}, "b3:" + "0" * 64, "../../etc/passwd"]


def rewritten(path: Path, edit: Callable[[list[Any]], Any]) -> None:
    """Change the entries of a journal, whose first is the header, and make a valid chain."""
    entries = [json.loads(text.split(b" ", 1)[1]) for text in path.read_bytes().splitlines()]
    changed = edit(entries)
    digest, content = line.NOTHING, b""
    for entry in entries if changed is None else changed:
        text = json.dumps(entry).encode()
        digest = line.chain(digest, text)
        content += line.line(digest, text)
    path.write_bytes(content)


class Waiting:
    """A run that has written one file and waits for permission to write the second."""

    def __init__(self, bench: Any, token: str | None = None) -> None:
        self.bench = bench
        bench.define('return [tools.write_file(path=p, content="x")["path"] for p in ["a", "b"]]')
        self.run = bench.service.invoke("t", session=token).run_id
        self.answer()
        assert bench.service.resume(self.run).error.code == "suspended"
        (self.path,) = bench.home.rglob(f"{self.run}.jsonl")

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
    whole = waiting.path.read_bytes()
    for place in range(0, len(whole), 97):
        waiting.path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        for work in ("show", "resume", "replay", "cancel"):
            assert waiting.code(work) in ("damaged", "not_found")
    lines = whole.splitlines(keepends=True)
    for gone in range(len(lines) - 1):
        waiting.path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
        assert waiting.code() in ("damaged", "not_found")
    assert sorted(p.name for p in waiting.bench.work.iterdir()) == [".albert", "a"]


FIELDS = "tool version kind arguments workspace session principal request_id trace repeat reason journal language python platform"


@pytest.mark.parametrize("field", FIELDS.split())
def test_forged_headers(waiting: Waiting, field: str) -> None:
    whole = waiting.path.read_bytes()

    def put(value: Any) -> Callable[[list[Any]], None]:
        return lambda entries: entries[0]["header"].update({field: value})

    for value in ODD:
        waiting.path.write_bytes(whole)
        rewritten(waiting.path, put(value))
        for work in ("show", "replay", "resume"):
            came = waiting.code(work)
            assert came is None or came in CODES
    waiting.path.write_bytes(whole)
    rewritten(waiting.path, lambda entries: [entries[0]["header"].pop(field), None][1])
    assert waiting.code() in ("damaged", "diverged")
    assert not (waiting.bench.work / "b").exists()


def test_forged_entries(waiting: Waiting) -> None:
    whole = waiting.path.read_bytes()
    entries = [json.loads(text.split(b" ", 1)[1]) for text in whole.splitlines()]
    for number, entry in enumerate(entries[1:], 1):
        for field in list(entry):
            for value in [*ODD, "gone"]:

                def edit(found: list[Any], n: int = number, f: str = field, v: Any = value) -> None:
                    found[n].pop(f) if v == "gone" else found[n].update({f: v})

                waiting.path.write_bytes(whole)
                rewritten(waiting.path, edit)
                came = waiting.code("show")
                assert came in (None, "damaged"), (number, field, value)
    assert not (waiting.bench.work / "b").exists()


@pytest.mark.parametrize("field", ["details", "code", "message", "source", "tool"])
def test_forged_failures(waiting: Waiting, field: str) -> None:
    whole = waiting.path.read_bytes()
    for value in [*ODD, {"trail": [{}]}, {"trail": 1}, {"line": 3}, "suspended", "cancelled", "exception"]:

        def edit(found: list[Any], v: Any = value) -> None:
            for entry in found:
                if entry.get("t") == "end":
                    del entry["value"]
                    entry["error"] = {"code": "io_error", "message": "m", "details": {}, field: v}

        waiting.path.write_bytes(whole)
        rewritten(waiting.path, edit)
        for work in ("show", "replay", "resume"):
            came = waiting.code(work)
            assert came is None or came in CODES
    assert not (waiting.bench.work / "b").exists()


def test_a_removed_step_is_found(waiting: Waiting) -> None:
    rewritten(waiting.path, lambda entries: [e for e in entries if e.get("t") not in ("begin", "end")])
    (waiting.bench.work / "a").write_text("since then")
    # The ledger has the effect.
    assert waiting.code() == "damaged"
    assert (waiting.bench.work / "a").read_text() == "since then"


def test_an_added_step_is_found(waiting: Waiting) -> None:
    """A forged step is not in the ledger, even if the chain is valid."""

    def edit(entries: list[Any]) -> None:
        for kind in ("begin", "end"):
            found = next(e for e in entries if e.get("t") == kind)
            arguments = {"path": "b", "content": "x"}
            entries.append({**found, "step": "1", **({"arguments": arguments} if kind == "begin" else {})})

    rewritten(waiting.path, edit)
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

    whole = waiting.path.read_bytes()
    rewritten(waiting.path, edit)
    assert waiting.code() == "damaged"
    # The original journal can be resumed.
    waiting.path.write_bytes(whole)
    waiting.answer()
    assert waiting.code() is None


def test_a_forged_read_is_made_again(make_bench: Any) -> None:
    bench = make_bench(governance=ASKS)
    (bench.work / "secret").write_text("true")
    bench.define('text = tools.read_file(path="secret")\n    return tools.write_file(path=text, content="x")["path"]')
    run = bench.service.invoke("t").run_id
    (path,) = bench.home.rglob(f"{run}.jsonl")

    def made_up(entries: list[Any]) -> list[Any]:
        (end,) = (e for e in entries if e.get("t") == "end")
        return [e for e in entries if e is not end and e.get("t") != "ask"] + [{**end, "value": "false"}]

    rewritten(path, made_up)
    with pytest.raises(Failure) as caught:
        bench.service.resume(run)
    assert caught.value.code == "damaged"
    # Without entries in the ledger, the service makes the read again.
    rewritten(path, lambda entries: [e for e in entries if e.get("t") != "end"])
    assert bench.service.resume(run).error.code == "suspended"


def test_changed_arguments_diverge(waiting: Waiting) -> None:
    def edit(entries: list[Any]) -> None:
        for entry in entries:
            if entry.get("t") in ("begin", "end") and "arguments" in entry:
                entry["arguments"] = {"path": "c", "content": "x"}

    rewritten(waiting.path, edit)
    waiting.answer()
    assert waiting.code() == "diverged"
    assert not (waiting.bench.work / "b").exists()


def test_a_forged_approval_allows_nothing(waiting: Waiting) -> None:
    rules = {"tools": {"t": {"requires_approval_in_modes": ["NORMAL"]}}}
    with waiting.bench.again(governance=rules) as strict:
        for approval in ("0" * 12, waiting.run, "", None):
            rewritten(
                waiting.path,
                lambda entries, a=approval: [e.update(approval=a) for e in entries if e.get("t") == "enter"] and None,
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
    whole = waiting.path.read_bytes()
    for grant in (*grants, "nobody", narrow.client):

        def edit(entries: list[Any], g: str = grant) -> None:
            for entry in entries:
                if entry.get("t") == "state" and "grant" in entry:
                    entry["grant"] = g

        waiting.path.write_bytes(whole)
        rewritten(waiting.path, edit)
        assert waiting.code() == "permission_denied"
    assert wide.id not in grants
    assert not (bench.work / "b").exists()


def test_a_run_of_another_workspace_diverges(waiting: Waiting, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / ".albert").mkdir(parents=True)
    place = {"home": waiting.bench.home, "workspace": tmp_path / "elsewhere"}
    with SyncToolService.open(**place, governance=ASKS) as other, pytest.raises(Failure) as caught:
        other.resume(waiting.run)
    assert caught.value.code == "diverged"
    rewritten(waiting.path, lambda entries: entries[0]["header"].update(python="2.7.18"))
    assert waiting.code() == "diverged"


def test_a_replay_of_a_primitive_does_not_call_it(make_bench: Any) -> None:
    bench = make_bench()
    result = bench.service.invoke("write_file", {"path": "a", "content": "x"}, dedupe_key="k")
    (bench.work / "a").write_text("since then")
    again = bench.service._wait(bench.service.service.runs.replay(result.run_id))
    assert again.value() == result.value()
    assert (bench.work / "a").read_text() == "since then"
    # A header that exchanges primitive and composite is refused.
    (path,) = bench.home.rglob(f"{result.run_id}.jsonl")
    rewritten(path, lambda entries: entries[0]["header"].update(kind="composite"))
    with pytest.raises(Failure):
        bench.service._wait(bench.service.service.runs.replay(result.run_id))
    assert (bench.work / "a").read_text() == "since then"


def test_a_repeat_checks_the_journal(make_bench: Any) -> None:
    bench = make_bench()
    first = bench.service.invoke("list_directory", dedupe_key="k")
    (path,) = bench.home.rglob(f"{first.run_id}.jsonl")
    whole = path.read_bytes()
    for field in ("error", "effects", "value", "state", "log", "calls", "policy"):
        for value in ODD:
            path.write_bytes(whole)
            rewritten(path, lambda entries, f=field, v=value: entries[-1].update({f: v}))
            result = bench.service.invoke("list_directory", dedupe_key="k")
            json.dumps(result.as_dict())
            assert result.ok or result.error.code in CODES


def test_deep_and_large_entries(waiting: Waiting) -> None:
    def deep(entries: list[Any]) -> None:
        nested: Any = 1
        for _ in range(900):
            nested = [nested]
        entries[-1]["value"] = nested

    rewritten(waiting.path, deep)
    for work in ("show", "resume", "replay"):
        came = waiting.code(work)
        assert came is None or came in CODES
