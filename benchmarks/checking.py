"""The processor time to check a source, with and without its types and its manifest: by its length, and by its saved callees."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from msgspec.structs import replace

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check import checker
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.testing import registry

EXAMPLES = Path(__file__).parent.parent / "examples" / "tools"
LENGTHS = (500, 1_000, 2_000, 5_000)
SAVED = 1_000


class Tools:
    """The built-in primitives, and tools that are added."""

    def __init__(self) -> None:
        self.known = {p.name: p.definition for p in registry().primitives()}

    def get(self, name: str) -> ToolDefinition | None:
        return self.known.get(name)

    def names(self) -> list[str]:
        return [*self.known]

    def add(self, source: str) -> None:
        """Check a source and add its tool with its manifest."""
        checked = checker.check(source, self).checked
        assert checked is not None
        definition = replace(checked.definition, version="0" * 64, manifest=analyse(checked))
        self.known[definition.name] = definition


def table(rounds: int) -> list[str]:
    """The lines of the tables."""
    return [*_examples(rounds), "", *_lengths(max(1, rounds // 3)), "", *_saved_tools(max(1, rounds // 3))]


def _examples(rounds: int) -> list[str]:
    tools = Tools()
    sources = _in_order(tools, [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.tool"))])
    found = ["| the examples of the project, together | ms | ratio |", "|---|---:|---:|"]
    times: dict[str, list[float]] = {"without types and manifest": [], "with types": [], "with types and manifest": []}
    for _ in range(rounds):
        for name, values in times.items():
            values.append(sum(_seconds(source, tools, name) for source in sources))
    first = statistics.median(times["without types and manifest"])
    for name, values in times.items():
        median = statistics.median(values)
        found.append(f"| {name} | {median * 1e3:.0f} | {median / first:.2f} |")
    return found


def _in_order(tools: Tools, sources: list[str]) -> list[str]:
    """The sources, callees before callers. Their tools are added."""
    found: list[str] = []
    pending = sources
    while pending:
        ready = [s for s in pending if checker.check(s, tools).checked is not None]
        assert ready
        for source in ready:
            tools.add(source)
        found += ready
        pending = [s for s in pending if s not in ready]
    return found


def _seconds(source: str, tools: Tools, which: str) -> float:
    begin = time.process_time()
    checked = (_without_types(source, tools) if which.startswith("without") else checker.check(source, tools)).checked
    assert checked is not None
    if which.endswith("and manifest") and not which.startswith("without"):
        analyse(checked)
    return time.process_time() - begin


def _without_types(source: str, tools: Tools) -> checker.Report:
    with (
        patch.object(checker.failing_types, "check", return_value=()),
        patch.object(checker, "infer"),
        patch.object(checker, "schema_for", return_value={}),
    ):
        return checker.check(source, tools)


def _lengths(rounds: int) -> list[str]:
    found = ["| a source of | checked, ms a line | its manifest, ms a line |", "|---|---:|---:|"]
    tools = Tools()
    for lines in LENGTHS:
        blocks = [
            f'    s = tools.read_file(path=p + "/{i}")\n    if s == "{i}":\n        x.append(s)\n    n += len(s)\n    n += 1\n'
            for i in range(lines // 5)
        ]
        start = 'def t(p: str) -> list:\n    """Read."""\n    x = []\n    n = 0\n'
        source = f"{start}{''.join(blocks)}    return x\n"
        checked = checker.check(source, tools).checked
        assert checked is not None
        check = _median(rounds, lambda source=source: checker.check(source, tools))  # type: ignore[misc]
        manifest = _median(rounds, lambda checked=checked: analyse(checked))  # type: ignore[misc]
        found.append(f"| {lines:,} lines | {check / lines * 1e3:.2f} | {manifest / lines * 1e3:.2f} |")
    return found


def _saved_tools(rounds: int) -> list[str]:
    fan = Tools()
    for i in range(SAVED):
        fan.add(f'def leaf_{i}(path: str) -> str:\n    """Read."""\n    return tools.read_file(path=path + ".{i}")\n')
    found = [f"| a tool that calls saved tools, of {SAVED:,} | its manifest, ms |", "|---|---:|"]
    for calls in (10, 100, SAVED):
        body = "".join(f"    found.append(tools.leaf_{i}(path=path))\n" for i in range(calls))
        source = f'def t(path: str) -> list:\n    """Read."""\n    found = []\n{body}    return found\n'
        checked = checker.check(source, fan).checked
        assert checked is not None
        found.append(f"| {calls:,} | {_median(rounds, lambda checked=checked: analyse(checked)) * 1e3:.0f} |")  # type: ignore[misc]
    chain = Tools()
    chain.add('def chain_0(path: str) -> str:\n    """Read."""\n    return tools.read_file(path=path)\n')
    for depth in range(1, 8):
        source = (
            f'def chain_{depth}(path: str) -> str:\n    """Read."""\n'
            f"    return tools.chain_{depth - 1}(path=path) + tools.chain_{depth - 1}(path=path + '.x')\n"
        )
        checked = checker.check(source, chain).checked
        assert checked is not None
        if depth in (1, 4, 7):
            took = _median(rounds, lambda checked=checked: analyse(checked))  # type: ignore[misc]
            found.append(f"| two, each of which calls two, {depth + 1} deep | {took * 1e3:.0f} |")
        chain.add(source)
    return found


def _median(rounds: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return statistics.median(times)
