"""The tasks of the judging process that need the checker: check, compile and outline a source."""

from __future__ import annotations

from typing import Any

import msgspec

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import Checked, check
from albert_tools.engine.check.facts import tool_name
from albert_tools.engine.check.finding_limits import capped
from albert_tools.engine.check.when_defined import with_existing_tools
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.judging.judging_limits import MAX_NAME
from albert_tools.engine.judging.unknown_parts import unknown_parts
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import Manifest
from albert_tools.engine.sandbox.worker.function_worker import Ask
from albert_tools.grammar import tree
from albert_tools.grammar.parse import parse


def check_source(source: str, ask: Ask) -> Any:
    """The findings about a source, and its tool if it has no error."""
    return _check(source, ask, compiled=False)


def compile_source(source: str, ask: Ask) -> Any:
    """As `check_source`, with the program of the tool."""
    return _check(source, ask, compiled=True)


def outline_source(source: str, ask: Ask) -> Any:
    """The public functions of a source, and the tools that it calls."""
    module = parse(source).module
    if module is None:
        return {"tools": [], "calls": []}
    calls = {name for node in tree.walk(module) if isinstance(node, tree.Call) and (name := tool_name(node.func))}
    tools = [s.name for s in module.body if isinstance(s, tree.FunctionDef) and not s.name.startswith("_")]
    return {"tools": tools, "calls": sorted(calls)}


TASKS = {"check": check_source, "compile": compile_source, "outline": outline_source}


#: After this many unknown tools, the process asks once for all names instead of for each tool.
MANY_UNKNOWN = 10


class _AskedCatalog:
    """The service's catalogue. Each question is asked once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._names: list[str] | None = None
        self._unknown = 0
        self._known: dict[str, tuple[ToolDefinition, str | None] | None] = {}

    def get(self, name: str) -> ToolDefinition | None:
        entry = self._found(name)
        return entry[0] if entry is not None else None

    def names(self) -> list[str]:
        if self._names is None:
            self._names = self._ask({"names": True}) or []
        return self._names

    def outdated(self, name: str) -> str | None:
        entry = self._found(name)
        return entry[1] if entry is not None else None

    def look_alike(self, name: str) -> str | None:
        like: str | None = self._ask({"like": name})
        return like

    def _found(self, name: str) -> tuple[ToolDefinition, str | None] | None:
        if name not in self._known:
            exists = len(name) <= MAX_NAME and (self._names is None or name in self._names)
            answer = self._ask({"tool": name}) if exists else None
            self._known[name] = None if answer is None else msgspec.convert(answer, tuple[ToolDefinition, str | None])
            self._unknown += answer is None
            if self._unknown == MANY_UNKNOWN:
                self.names()
        return self._known[name]


def _check(source: str, ask: Ask, compiled: bool) -> Any:
    catalog = _AskedCatalog(ask)
    report = with_existing_tools(check(source, catalog), catalog, catalog.outdated, catalog.look_alike)
    answer: dict[str, Any] = {"findings": msgspec.to_builtins(report.diagnostics)}
    if report.checked is not None:
        manifest = analyse(report.checked)
        findings = capped((*report.diagnostics, *unknown_parts(report.checked, manifest)))
        answer["findings"] = msgspec.to_builtins(findings)
        answer["tool"] = _tool(report.checked, manifest)
        if compiled:
            try:
                program = compile_program(report.checked)
            except Failure as failure:
                return {**answer, "defect": failure.message}
            answer["program"] = {"lowered": program.lowered, "lines": program.lines}
    return answer


def _tool(checked: Checked, manifest: Manifest) -> Any:
    d = checked.definition
    return {
        "name": d.name,
        "description": d.description,
        "parameters": msgspec.to_builtins(d.parameters),
        "result": d.result,
        "timeout": d.timeout,
        "calls": [c.name for c in checked.calls],
        "imports": checked.imports,
        "examples": msgspec.to_builtins(checked.examples),
        "manifest": manifest.as_dict(),
    }
