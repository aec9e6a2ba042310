"""The language tests are programs: every chunk under `tests/cases` must do what its comments say."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import Report, check
from albert_tools.engine.compile.lower import lower
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.review import manifest_view
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.grammar.diagnostic import Severity
from tests.helpers.harness import Chunk, Outcome, catalog, chunks, errors, mismatches

ROOT = Path(__file__).parent.parent

#: Runs all chunks of a file in one process.
Engine = Callable[[list[Chunk]], list[Outcome]]


@pytest.mark.parametrize("chunk", chunks("parse") + chunks("check"), ids=lambda c: c.id)
def test_findings(chunk: Chunk) -> None:
    """The diagnostics are exactly those in the comments. Each has a hint or a fix, and each fix removes its diagnostic."""
    report = _report(chunk.source)
    problem = mismatches(chunk, report.diagnostics)
    assert not problem, f"{chunk.file}.tool:{chunk.line}\n{problem}"
    assert (report.checked is None) == any(f.severity == "error" for f in chunk.findings)
    _ways_out(chunk, report)


def _ways_out(chunk: Chunk, report: Report) -> None:
    before = errors(report.diagnostics)
    for d in report.diagnostics:
        assert d.hint or d.fix or "did you mean" in d.message, f"{d.code} has no hint, fix or nearest name: {d.message}"
        if d.fix is None or d.severity != Severity.ERROR:
            continue
        fixed = d.fix.apply(chunk.source)
        after = errors(check(fixed, catalog()).diagnostics)
        assert after[d.code, d.message] < before[d.code, d.message], f"still there after {d.fix.title!r}:\n{fixed}"
        assert not after - before, f"new after {d.fix.title!r}: {after - before}\n{fixed}"


@pytest.mark.parametrize("engine", ["cpython", "lowered", "sandbox"])
@pytest.mark.parametrize("chunk", chunks("run"), ids=lambda c: c.id)
def test_runs(chunk: Chunk, engine: str) -> None:
    """The outcome in CPython is the one in the comments, and every other engine has the same outcome as CPython."""
    oracle = _outcomes("cpython", chunk.file)[chunk.id]
    if engine != "cpython":
        ours = _outcomes(engine, chunk.file)[chunk.id]
        assert repr(ours) == repr(oracle)
        return
    result, raises = chunk.result, chunk.raises
    assert (oracle.error, oracle.code, oracle.text) == (raises or (None, None, None))
    assert repr(oracle.result) == repr(result)
    assert chunk.raise_line in (None, oracle.line)
    assert list(oracle.printed) == chunk.printed
    assert [list(c) for c in oracle.calls] == [[name, given] for name, given, _, _ in chunk.transcript]


@pytest.mark.parametrize("chunk", chunks("manifest"), ids=lambda c: c.id)
def test_manifests(chunk: Chunk) -> None:
    """A reviewer reads exactly the lines in the comments, and the program has no findings but those."""
    report = _report(chunk.source)
    assert not mismatches(chunk, report.diagnostics)
    # The lines that a manifest names are those of the chunk.
    checked = _report(chunk.source.lstrip("\n")).checked
    assert checked is not None
    shown = [f"{'> ' * one.indent}{one.name} {one.text}".strip() for one in manifest_view.lines(analyse(checked))]
    assert [" ".join(line.split()) for line in shown] == chunk.manifest


@cache
def _report(source: str) -> Report:
    """The checker's report. It is made once and used for all engines."""
    return check(source, catalog())


@cache
def _outcomes(engine: str, file: str) -> dict[str, Outcome]:
    these = [c for c in chunks("run") if c.file == file]
    return {c.id: o for c, o in zip(these, ENGINES[engine](these), strict=True)}


def _in_cpython(these: list[Chunk], *, lowered: bool) -> list[Outcome]:
    programs = []
    maps: list[tuple[int, ...] | None] = []
    outcomes: list[Outcome | None] = []
    for chunk in these:
        report = _report(chunk.source)
        checked = report.checked
        problem = mismatches(chunk, report.diagnostics)
        outcomes.append(Outcome(error="refused", text=problem) if problem else None)
        if problem or checked is None:
            continue
        low = lower(checked) if lowered else None
        maps.append(low.lines if low else None)
        programs.append(
            {
                "text": low.text if low else chunk.source,
                "lowered": lowered,
                "entry": checked.definition.name,
                "arguments": chunk.arguments,
                "transcript": chunk.transcript,
                "parameters": {d.name: [p.name for p in d.parameters] for d in catalog().definitions.values()},
            }
        )
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.oracle"],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONHASHSEED": "0",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "PYTHONTZPATH": "",
            "PYTHONPATH": str(ROOT),
        },
    )
    assert done.returncode == 0, done.stderr
    ran = []
    for one, lines in zip(json.loads(done.stdout), maps, strict=True):
        line = one.get("line")
        printed = tuple(one["printed"].removesuffix("\n").split("\n")) if one["printed"] else ()
        ran.append(
            Outcome(
                one.get("result"),
                one.get("error"),
                one.get("code"),
                one.get("text"),
                lines[line - 1] if lines and line else line,
                printed,
                tuple((name, given) for name, given in one["calls"]),
            )
        )
    rest = iter(ran)
    return [refused or next(rest) for refused in outcomes]


def _in_the_sandbox(these: list[Chunk]) -> list[Outcome]:
    """Run every chunk in its own worker, in the real sandbox."""

    async def run() -> list[Outcome]:
        sandbox = Sandbox()
        await sandbox.start()
        try:
            return [await _sandboxed(sandbox, chunk) for chunk in these]
        finally:
            await sandbox.close()

    return asyncio.run(run())


async def _sandboxed(sandbox: Sandbox, chunk: Chunk) -> Outcome:
    checked = _report(chunk.source).checked
    if checked is None:
        return Outcome(error="refused")
    log: list[str] = []
    calls: list[tuple[int, str, Any]] = []
    unanswered = list(enumerate(chunk.transcript))

    async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
        # Reads may overlap in `parallel`. So the answer to a call is found by its arguments, not by the order of calls.
        entry = next((e for e in unanswered if e[1][:2] == (name, json.loads(json.dumps(arguments)))), None)
        calls.append((entry[0] if entry else len(chunk.transcript), name, arguments))
        if entry is None:
            raise Failure("internal_error", "a call that the case does not list", tool=name)
        unanswered.remove(entry)
        _, _, result, failure = entry[1]
        if failure is not None:
            raise Failure(failure[0], failure[1], tool=name)
        return result

    result = error = code = text = line = None
    try:
        result = await sandbox.run(compile_program(checked), chunk.arguments, call=call, log=log.append)
    except Failure as f:
        error, text, line = f.details.get("type") or f.code, f.message, f.line
        if error == "ToolError":
            code = f.details.get("code", f.code)
        elif f.code == "exception":
            text = f.message.removeprefix(error).removeprefix(": ")
        else:
            line = None
    printed = "".join(log)
    lines = tuple(printed.removesuffix("\n").split("\n")) if printed else ()
    if all(set(d.effects) <= {"read"} for _, name, _ in calls if (d := catalog().get(name))):
        calls.sort(key=lambda c: c[0])
    return Outcome(result, error, code, text, line, lines, tuple((name, given) for _, name, given in calls))


ENGINES: dict[str, Engine] = {
    "cpython": lambda these: _in_cpython(these, lowered=False),
    "lowered": lambda these: _in_cpython(these, lowered=True),
    "sandbox": _in_the_sandbox,
}
