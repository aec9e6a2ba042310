"""The example tools: each passes the checks, and its examples pass under CPython and in the service. The example scripts run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Failure, SyncToolService
from albert_tools.engine.check.checker import Checked, Report, check
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.testing import registry
from tests.helpers.plain_tools import problem

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples" / "tools").glob("*.tool"))}
BUILTIN = {p.name: p.definition for p in registry().primitives()}


class Catalog:
    """The primitives and the tools that were checked so far."""

    def __init__(self) -> None:
        self.known: dict[str, ToolDefinition] = dict(BUILTIN)

    def get(self, name: str) -> ToolDefinition | None:
        return self.known.get(name)

    def names(self) -> list[str]:
        return sorted(self.known)


@cache
def reports() -> dict[str, Report]:
    """The report of every tool, callees first. A tool with an unknown callee keeps its findings."""
    catalog = Catalog()
    done: dict[str, Report] = {}
    waiting = dict(SOURCES)
    while waiting:
        found = {name: check(source, catalog) for name, source in waiting.items()}
        ready = [name for name, report in found.items() if report.checked is not None]
        for name in ready:
            checked = found[name].checked
            assert checked is not None
            catalog.known[checked.definition.name] = checked.definition
        done |= {name: found[name] for name in (ready or waiting)}
        waiting = {name: source for name, source in waiting.items() if name not in done}
    return done


def checked_tools() -> dict[str, Checked]:
    return {name: r.checked for name, r in reports().items() if r.checked is not None}


def in_order() -> list[str]:
    """Names, callees first."""
    return [name for name in reports() if name in checked_tools()]


EXAMPLES = [(name, i) for name, tool in checked_tools().items() for i in range(len(tool.examples))]


def test_the_tools_cover_the_common_primitives() -> None:
    tools = checked_tools()
    called = {c.name for tool in tools.values() for c in tool.calls}
    assert len(SOURCES) >= 14
    assert max(tool.definition.depth for tool in tools.values()) >= 2
    assert {"http_request", "git", "read_file", "write_file", "list_directory"} <= called


@pytest.mark.parametrize("name", SOURCES)
def test_it_has_no_findings(name: str) -> None:
    report = reports()[name]
    assert [f"{d.span.line}: {d.code} {d.message}" for d in report.diagnostics] == []
    assert report.checked is not None
    assert report.checked.definition.name == name
    assert report.checked.examples
    undescribed = [p.name for p in report.checked.definition.parameters if not p.description]
    assert undescribed == []


@pytest.mark.parametrize(("name", "index"), EXAMPLES)
def test_its_examples_pass_under_cpython(name: str, index: int) -> None:
    tools = checked_tools()
    found = problem(name, tools[name].examples[index], tools)
    assert not found, f"{name}.tool:{tools[name].examples[index].line}\n{found}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncToolService]:
    """A service in a copy of the example project. Defining the tools runs their examples in the sandbox."""
    folder = tmp_path_factory.mktemp("examples").resolve()
    workspace = folder / "project"
    shutil.copytree(ROOT / "examples" / "data" / "project", workspace)
    (workspace / ".albert").mkdir()
    with SyncToolService.open(home=folder / "home", workspace=workspace) as opened:
        for name in in_order():
            try:
                opened.define(SOURCES[name])
            except Failure as failure:
                pytest.fail(f"{name}: {failure.message}\n{failure.details}")
        yield opened


def test_the_service_saves_them_all(service: SyncToolService) -> None:
    saved = {tool.name for tool in service.list() if tool.kind == "composite"}
    assert saved == set(SOURCES)


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        (
            "csv_to_markdown",
            {"path": "people.csv"},
            "| id | name |\n|---:|---|\n| 1 | Ada |\n| 2 | Grace |\n| 3 | Katherine |\n",
        ),
        (
            "merge_csv",
            {"left": "people.csv", "right": "cities.csv", "key": "id", "output": "merged.csv"},
            {"path": "merged.csv", "rows": 4, "matched": 2},
        ),
        ("project_dependencies", {}, {"python": [], "javascript": []}),
    ],
)
def test_they_work_on_the_example_project(
    service: SyncToolService, name: str, arguments: dict[str, Any], wanted: Any
) -> None:
    assert service.invoke(name, arguments).value() == wanted


def script(name: str, home: Path, timeout: float) -> str:
    """The output of an example script, which must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ALBERT_HOME": str(home)}
    command = [sys.executable, str(ROOT / "examples" / name)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_embedding_application(tmp_path: Path) -> None:
    printed = script("embed.py", tmp_path, timeout=60)
    assert "{'Ada': 46.875, 'Grace': 15.625}" in printed
    assert "did you mean 'orders_of'" in printed


@pytest.mark.slow
def test_the_orchestrator(tmp_path: Path) -> None:
    lines = script("orchestrator.py", tmp_path, timeout=60).splitlines()
    assert [line.split()[:2] for line in lines[:8]] == [
        ["read_file", "permission_denied"],
        ["bash", "permission_denied"],
        ["list_directory", "not_found"],
        ["build_site", "suspended"],
        ["a", "person"],
        ["build_site", "ok"],
        ["build_site", "again:"],
        ["write_file", "permission_denied"],
    ]
    assert lines[8].startswith("aborted: write_file is forbidden in LOCKDOWN")
    counted, recorded, on_disk = lines[9:]
    assert counted.startswith("counted: 8 completed, 3 failed, 4 blocked, 1 retried; ")
    assert "'timeout': 1" in counted
    assert ", proved; 9 decisions, 3 denials (lease.tools, " in recorded
    assert on_disk == "on disk: about.html, index.html"


def test_the_agent(tmp_path: Path) -> None:
    """It writes a tool, corrects it, and survives the end of its process. A later conversation finds the tool."""
    assert script("agent.py", tmp_path, timeout=60).splitlines() == [
        "The first conversation:",
        "  search_tools: ok",
        "  define_tool: invalid_source",
        "The process ends. Another one continues:",
        "  define_tool: ok",
        "  run_tool: ok",
        "I replaced 'cat' 2 times in notes.md.",
        "notes.md: a dog and a dog",
        "A later conversation:",
        "  search_tools: ok",
        "  run_tool: ok",
        "I replaced 'milk' 1 times in todo.md.",
        "todo.md: buy oat milk",
    ]


@pytest.mark.surfaces
@pytest.mark.parametrize("framework", ["langchain", "openai_agents", "pydantic_ai", "smolagents"])
def test_an_agent_of_a_framework_calls_a_tool_that_was_approved_meanwhile(framework: str, tmp_path: Path) -> None:
    printed = script(f"frameworks/{framework}_agent.py", tmp_path, timeout=120)
    assert printed.splitlines()[:2] == ["It is defined.", "It says HELLO."]


@pytest.mark.slow
def test_from_a_text_to_a_commit(tmp_path: Path) -> None:
    """A composite writes, reads back, fixes, tests and commits; the script compares record, counters and repository."""
    done, recorded, *rest = script("build_and_commit.py", tmp_path, timeout=280).splitlines()
    assert done == "done: the tests pass, and nothing is left to commit"
    assert recorded.startswith("recorded: 9 steps, each decided before it was done; 9 effects; ")
    assert rest == [
        "counted: 10 completed, 1 blocked",
        "denied: git by tools.git.allowed_operations",
        "committed: area.py, test_area.py, as written and tested",
    ]


@pytest.mark.slow
def test_the_demonstration(tmp_path: Path) -> None:
    script("demo.py", tmp_path, timeout=120)
