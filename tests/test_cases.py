"""The language's tests are programs: every chunk under `tests/cases`, held to its own comments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from albert_tools.engine.check.check import Report, check
from albert_tools.engine.compile.lower import lower
from albert_tools.grammar.diagnostic import Severity
from tests.harness import Chunk, Outcome, catalog, chunks, errors, mismatches

ROOT = Path(__file__).parent.parent

#: How a file's chunks are run at once: one process for all of them.
Engine = Callable[[list[Chunk]], list[Outcome]]


@pytest.mark.parametrize("chunk", chunks("parse") + chunks("check"), ids=lambda c: c.id)
def test_findings(chunk: Chunk) -> None:
    """Exactly the findings that the comments name, each with a way out, and each fix an edit after which it is gone."""
    report = check(chunk.source, catalog())
    problem = mismatches(chunk, report.diagnostics)
    assert not problem, f"{chunk.file}.tool:{chunk.line}\n{problem}"
    assert (report.checked is None) == any(f.severity == "error" for f in chunk.findings)
    _ways_out(chunk, report)


def _ways_out(chunk: Chunk, report: Report) -> None:
    before = errors(report.diagnostics)
    for d in report.diagnostics:
        assert d.hint or d.fix or "did you mean" in d.message, f"{d.code} says no way out: {d.message}"
        if d.fix is None or d.severity != Severity.ERROR:
            continue
        fixed = d.fix.apply(chunk.source)
        after = errors(check(fixed, catalog()).diagnostics)
        assert after[d.code, d.message] < before[d.code, d.message], f"still there after {d.fix.title!r}:\n{fixed}"
        assert not after - before, f"new after {d.fix.title!r}: {after - before}\n{fixed}"


@pytest.mark.parametrize("engine", ["cpython", "lowered"])
@pytest.mark.parametrize("chunk", chunks("run"), ids=lambda c: c.id)
def test_runs(chunk: Chunk, engine: str) -> None:
    """CPython does what the comments say; every other engine does what CPython did."""
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


@cache
def _outcomes(engine: str, file: str) -> dict[str, Outcome]:
    these = [c for c in chunks("run") if c.file == file]
    return {c.id: o for c, o in zip(these, ENGINES[engine](these), strict=True)}


def _in_cpython(these: list[Chunk], *, lowered: bool) -> list[Outcome]:
    programs = []
    maps: list[tuple[int, ...] | None] = []
    outcomes: list[Outcome | None] = []
    for chunk in these:
        report = check(chunk.source, catalog())
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
        [sys.executable, "-m", "tests.oracle"],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)},
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


ENGINES: dict[str, Engine] = {
    "cpython": lambda these: _in_cpython(these, lowered=False),
    "lowered": lambda these: _in_cpython(these, lowered=True),
}
