"""The same demands on every primitive of the catalogue.

Each primitive does what it says, refuses arguments out of bounds, is denied by name and by rule, and ends at its timeout or
when it is cancelled. It records its effects. It can be called from a saved tool and from the command line.

The row of a primitive is in its own test file (`tests.helpers.catalogue_rows`). A primitive without a row fails. If a family
shows a demand by its own tests, its row names them. The bounds come from the declarations, and the tests break every declared
bound once.
"""

from __future__ import annotations

import ast
import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from albert_tools import SyncToolService
from albert_tools.engine.call.context import DEFAULT_PRIORITY, Queued
from albert_tools.engine.model.definition import Schema
from albert_tools.engine.model.record_types import Entry
from albert_tools.engine.model.validation import violations
from albert_tools.store.record.record import Record
from albert_tools.testing import registry
from tests.helpers.catalogue_rows import DEMANDS, PUBLISHED, STARTED, Row, elsewhere
from tests.surfaces.conftest import Albert

ROOT = Path(__file__).resolve().parents[1]
PRIMITIVES = {p.name: p for p in registry().primitives()}

#: The example program that goes from a text to a commit.
EXAMPLE = (ROOT / "examples" / "tools" / "build_and_commit.tool").read_text("utf-8")

#: Families whose members share one table of tests.
FAMILIES = {
    "files": elsewhere(
        "tests/engine/pipeline/test_files_family.py",
        done="test_a_call_by_hand",
        denied="test_a_forbidden_path",
        timeout="test_after_a_timeout_a_call_has_no_effect",
        cancelled="test_after_its_cancellation_a_call_has_no_effect",
        composite="test_a_call_from_a_program",
        command_line="tests/surfaces/test_files_by_hand.py::test_each_tool_of_the_files_family",
    ),
    "web": elsewhere(
        "tests/builtins/test_web_governed.py",
        done="test_an_allowed_call_and_its_record",
        denied="test_a_denied_call_names_its_rule",
        timeout="test_it_times_out",
        cancelled="test_it_is_cancelled",
        composite="test_from_a_program",
        command_line="tests/surfaces/test_web_command.py::test_allowed_recorded_and_denied",
    ),
}


def _rows() -> dict[str, Row]:
    rows = {name: FAMILIES[p.definition.family] for name, p in PRIMITIVES.items() if p.definition.family in FAMILIES}
    for path in sorted((ROOT / "tests/builtins").glob("test_*.py")):
        if "\nCATALOGUE = {" in path.read_text("utf-8"):
            rows |= import_module(f"tests.builtins.{path.stem}").CATALOGUE
    return rows


ROWS = _rows()


def test_every_primitive_has_a_row() -> None:
    assert list(ROWS.keys() - PRIMITIVES.keys()) == []
    assert list(PRIMITIVES.keys() - ROWS.keys()) == [], "add a row to CATALOGUE in its test file"


@cache
def names_of_tests(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and node.name.startswith("test_")}


@pytest.mark.parametrize("tool", [name for name, row in ROWS.items() if row.proved])
def test_the_tests_that_a_row_names_cover_its_tool(tool: str) -> None:
    for demand, node in ROWS[tool].proved.items():
        path, _, name = node.partition("::")
        assert demand in DEMANDS
        assert name in names_of_tests(path), node
        # The tests use the name of this tool, or the example calls it.
        assert f'"{tool}"' in (ROOT / path).read_text("utf-8") or f"tools.{tool}(" in EXAMPLE, node


def demanded(demand: str) -> list[str]:
    return [name for name, row in ROWS.items() if demand not in row.proved]


class World:
    """A home with rules, a workspace that is a repository, a service, and an `albert` command line on the same home."""

    def __init__(self, folder: Path, tools: Mapping[str, Mapping[str, Any]], watch: Any = None, **rules: Any) -> None:
        self.albert = Albert(folder)
        self.work, self.home = self.albert.project, self.albert.home
        log = folder / "syslog"
        log.write_text("Jan  1 00:00:00 host app[1]: hello\n")
        governance = {
            "allow": ["read_system_logs"],
            "tools": tools,
            "categories": {"execute": {"allowed_in_modes": ["NORMAL"]}},
            "primitives": {
                "read_system_logs": {"files": [str(log)]},
                **{
                    name: {"confinement": "bwrap"} for name in ("bash", "run_program", "git", "run_tests", "run_linter")
                },
            },
            **rules,
        }
        config = self.home / "config"
        config.mkdir(parents=True)
        (config / "governance.yaml").write_text(yaml.safe_dump(governance))
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.work)], check=True)
        files = {
            "a.txt": "one\n",
            "slow.py": "import time\n\n\ndef test_it() -> None:\n    time.sleep(600)\n",
        }
        for name, text in files.items():
            (self.work / name).write_text(text)
        self.service = SyncToolService.open(home=self.home, workspace=self.work, telemetry=watch)

    def publish(self) -> None:
        """Publish the artifact that `get_artifact` and `read_result` read."""
        self.service.invoke("publish_artifact", {"id": "old", "category": "c", "content": PUBLISHED}).value()

    def start(self) -> None:
        """Start the batch that `read_batch` reads."""
        queued = Queued("default", DEFAULT_PRIORITY, batch=STARTED)
        reading = PRIMITIVES["read_file"].definition
        batch = self.service.service.batches.add(reading, [{"path": "a.txt"}], 1, queued, 1)
        asyncio.run_coroutine_threadsafe(batch, self.service._loop).result(120)

    def entries(self) -> list[Entry]:
        """Return the ledger's entries about calls so far."""
        with Record(self.home / "state" / "record") as log:
            return list(log.entries({"call", "denied", "result"}))

    def last(self, tool: str) -> dict[str, Any]:
        """Return the decision on the tool's last call, and its result."""
        entries = self.entries()
        at = max(n for n, e in enumerate(entries) if e.data.get("tool") == tool)
        decision = {"kind": entries[at].kind, **entries[at].data}
        # A call that only reads has one entry with decision and result.
        after = [e.data for e in entries[at:] if e.data["call"] == decision["call"] and "ok" in e.data]
        return {"decision": decision, "result": after[0] if after else None}


@contextmanager
def opened(folder: Path, *arguments: Any, **options: Any) -> Iterator[World]:
    world = World(folder.resolve(), *arguments, **options)
    try:
        yield world
    finally:
        world.service.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world that allows everything."""
    with opened(tmp_path_factory.mktemp("open"), {}) as made:
        made.publish()
        made.start()
        yield made


def recorded(effects: Any, row: Row) -> list[dict[str, Any]]:
    """The fields of each effect that the row lists."""
    return [{k: e.get(k) for k in wanted} for e, wanted in zip(effects, row.effects, strict=True)]


@pytest.mark.parametrize("tool", demanded("done"))
def test_it_succeeds_and_its_effects_are_recorded(world: World, tool: str) -> None:
    row = ROWS[tool]
    result = world.service.invoke(tool, row.arguments)
    assert result.ok, result.error
    assert violations(result.output, PRIMITIVES[tool].definition.result) == []
    assert recorded([e.as_dict() for e in result.effects], row) == row.effects
    record = world.last(tool)
    assert (record["decision"]["kind"], record["decision"]["verdict"]) == ("call", "allow")
    assert record["decision"]["rule_id"]
    assert (record["result"]["ok"], record["result"]["result_hash"]) == (True, result.result_hash)
    assert recorded(record["result"].get("effects", []), row) == row.effects


@pytest.mark.parametrize("tool", demanded("composite"))
def test_it_is_called_by_a_saved_tool(world: World, tool: str) -> None:
    row = ROWS[tool]
    name = f"by_{tool}"
    arguments = ", ".join(f"{name}={value!r}" for name, value in row.arguments.items())
    world.service.define(f'def {name}() -> Any:\n    """Call it."""\n    return tools.{tool}({arguments})\n')
    result = world.service.invoke(name)
    assert result.ok, result.error
    assert violations(result.output, PRIMITIVES[tool].definition.result) == []
    assert [e.tool for e in result.effects] == [tool] * len(row.effects)
    assert world.last(tool)["decision"]["parent"] == world.last(name)["decision"]["call"]


@pytest.mark.parametrize("tool", demanded("command_line"))
def test_it_is_called_from_the_command_line(world: World, tool: str) -> None:
    done = world.albert("run", tool, "--args", json.dumps(ROWS[tool].arguments), "--json")
    assert done.code == 0, done.err + done.out
    assert violations(done.document()["output"], PRIMITIVES[tool].definition.result) == []


#: For each format, a text that breaks it, and the rule that reports it. (A `..` is denied; the tests of paths show
#: that.)
MALFORMED = {
    "albert-path": ("a\0b", "nul"),
    "albert-folder": ("a\0b", "nul"),
    "albert-command": ("a\0b", "nul"),
    "albert-argument": ("a\0b", "nul"),
    "albert-entry": ("no equals sign", "one_equals"),
    "albert-hash": ("b3:abc", "hash"),
    "albert-prompt-hash": ("abc", "hash"),
    "albert-content": None,
    "albert-edit": None,
}
#: The tests do not make longer texts than this. A larger call would be refused as a whole.
LONGEST = 16 * 1024 * 1024
KEYWORDS = {"type", "enum", "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "items", "anyOf"}
KEYWORDS |= {"minimum", "maximum", "exclusiveMinimum", "properties", "required", "additionalProperties", "x-recorded"}


def breaking(schema: Schema) -> Iterator[tuple[str, Any, str]]:
    """Values that break one bound of a parameter each: ``(field below the parameter, value, rule)``."""
    assert schema.keys() <= KEYWORDS, "break the new bound here"
    for one in schema.get("anyOf", ()):
        if one != {"type": "null"}:
            yield from (b for b in breaking(one) if b[2] != "type")
    kinds = schema.get("type", ())
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    if kinds or "anyOf" in schema:
        yield "", ({"x": 1} if "object" not in str(schema) else 1), "type"
    if "enum" in schema:
        yield "", "no such", "enum"
    if schema.get("minLength", 0) > 0:
        yield "", "x" * (schema["minLength"] - 1), "min_length"
    if schema.get("maxLength", LONGEST) < LONGEST and "hash" not in schema.get("format", ""):
        yield (
            "",
            ("A=" if "entry" in schema.get("format", "") else "xx") + "x" * (schema["maxLength"] - 1),
            "max_length",
        )
    if "pattern" in schema:
        yield "", "-x y", "pattern"
    if "format" in schema and (found := MALFORMED[schema["format"]]) is not None:
        yield "", *found
    for keyword, beyond, rule in (
        ("minimum", -1, "minimum"),
        ("maximum", 1, "maximum"),
        ("exclusiveMinimum", 0, "minimum"),
    ):
        if keyword in schema:
            yield "", schema[keyword] + beyond, rule
    if "minItems" in schema:
        yield "", [], "min_items"
    if "items" in schema:
        if "maxItems" in schema:
            yield "", ["A=b"] * (schema["maxItems"] + 1), "max_items"
        for below, value, rule in breaking(schema["items"]):
            yield f"[0]{below}", [value], rule
    if isinstance(schema.get("additionalProperties"), dict):
        for below, value, rule in breaking(schema["additionalProperties"]):
            yield f".x{below}", {"x": value}, rule


def broken(world: World, tool: str, arguments: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Make a call with invalid arguments and return the violations. The call must have no effect."""
    result = world.service.invoke(tool, arguments)
    assert result.error is not None
    assert result.error.code == "invalid_arguments", result.error
    assert result.effects == ()
    assert world.last(tool)["decision"]["code"] == "invalid_arguments"
    return {(v["field"], v["rule"]) for v in result.error.details["violations"]}


@pytest.mark.parametrize("tool", PRIMITIVES)
def test_every_bound_applies_and_all_violations_are_reported_at_once(world: World, tool: str) -> None:
    definition = PRIMITIVES[tool].definition
    required = {(p.name, "required") for p in definition.parameters if p.required}
    assert broken(world, tool, {"no_such": 1}) == {("no_such", "unknown"), *required}
    # The first call breaks the first bound of every parameter, the second call the second bound, and so on.
    rounds = {p.name: list(breaking(p.schema)) for p in definition.parameters}
    for number in range(max(map(len, rounds.values()), default=0)):
        values = {name: found[number] for name, found in rounds.items() if number < len(found)}
        arguments = {name: value for name, (_, value, _) in values.items()}
        wanted = {(name + below, rule) for name, (below, _, rule) in values.items()}
        excluded = {
            names for names in (i.names for i in definition.invariants) if len(arguments.keys() & set(names)) > 1
        }
        found = broken(world, tool, arguments)
        assert {f for f in found if f[1] not in ("excludes", "required")} == wanted
        assert {f for f in found if f[1] == "required"} <= required
        assert len([f for f in found if f[1] == "excludes"]) == len(excluded)


GOOD = {"boolean": True, "integer": 1, "string": "x"}


@pytest.mark.parametrize(
    ("tool", "invariant"),
    [(name, i) for name, p in PRIMITIVES.items() for i in p.definition.invariants],
    ids=lambda v: v if isinstance(v, str) else "-".join(v.names),
)
def test_every_invariant(world: World, tool: str, invariant: Any) -> None:
    assert invariant.rule == "excludes"
    arguments = {}
    for name in invariant.names:
        schema = PRIMITIVES[tool].definition.parameter(name).schema  # type: ignore[union-attr]
        schema = next((s for s in schema.get("anyOf", ()) if s != {"type": "null"}), schema)
        arguments[name] = "0" * 64 if "hash" in schema.get("format", "") else GOOD[schema["type"]]
    assert (invariant.names[1], "excludes") in broken(world, tool, arguments)


@pytest.fixture(scope="module")
def forbidding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world whose rules contain the section of each row."""
    sections = {name: ROWS[name].section for name in demanded("denied")}
    with opened(tmp_path_factory.mktemp("forbidding"), sections) as made:
        yield made


@pytest.fixture(scope="module")
def denying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world that denies every tool by name."""
    with opened(tmp_path_factory.mktemp("denying"), {}, deny=list(PRIMITIVES)) as made:
        yield made


def assert_denied(world: World, tool: str, rule: str) -> None:
    result = world.service.invoke(tool, ROWS[tool].arguments)
    assert result.error is not None
    assert (result.error.code, result.error.rule) == ("permission_denied", rule), result.error
    assert result.effects == ()
    record = world.last(tool)
    assert record["result"] is None
    assert (record["decision"]["kind"], record["decision"]["rule_id"]) == ("denied", rule)


@pytest.mark.parametrize("tool", demanded("denied"))
def test_it_is_denied_by_its_name_and_by_a_rule(denying: World, forbidding: World, tool: str) -> None:
    assert_denied(denying, tool, "deny")
    assert_denied(forbidding, tool, f"tools.{tool}.{ROWS[tool].rule}")


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world that gives slow calls one second, and all other calls too little time to finish."""
    sections = {n: {"timeout_seconds": 0.000_001 if ROWS[n].slow is None else 1} for n in demanded("timeout")}
    with opened(tmp_path_factory.mktemp("hurried"), sections) as made:
        yield made


@pytest.mark.parametrize("tool", demanded("timeout"))
def test_it_ends_at_its_timeout(hurried: World, tool: str) -> None:
    row = ROWS[tool]
    result = hurried.service.invoke(tool, row.arguments if row.slow is None else row.slow)
    assert result.error is not None
    assert result.error.code == "timeout", result.error
    record = hurried.last(tool)
    assert record["decision"]["verdict"] == "allow"
    assert (record["result"]["ok"], record["result"]["code"]) == (False, "timeout")


class Watch:
    """Calls `then` as soon as a call of `tool` has begun."""

    def __init__(self) -> None:
        self.tool = ""
        self.then: Callable[[], object] = lambda: None

    def started(self, span: Any, call: Any) -> None:
        if call.tool == self.tool:
            self.then()

    def ended(self, span: Any, call: Any) -> None:
        pass


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Watch]]:
    watch = Watch()
    with opened(tmp_path_factory.mktemp("watched"), {}, watch) as made:
        made.publish()
        yield made, watch


@pytest.mark.parametrize("tool", demanded("cancelled"))
def test_it_ends_when_it_is_cancelled(watched: tuple[World, Watch], tool: str) -> None:
    world, watch = watched
    row = ROWS[tool]
    arguments = row.arguments if row.slow is None else row.slow

    async def main() -> None:
        task = asyncio.create_task(world.service.service.invoke(tool, arguments))
        # A slow call is cancelled a moment after its beginning, any other call at its beginning.
        begun = asyncio.Event()
        watch.tool, watch.then = tool, task.cancel if row.slow is None else begun.set
        if row.slow is not None:
            await begun.wait()
            await asyncio.sleep(0.05)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run_coroutine_threadsafe(main(), world.service._loop).result(120)
    watch.tool = ""
    record = world.last(tool)
    if row.slow is not None:
        assert (record["result"]["ok"], record["result"]["code"]) == (False, "cancelled")
    elif record["decision"]["kind"] == "call":
        # A quick call may end before the cancellation. It has a result in both cases.
        assert record["result"]["ok"] or record["result"]["code"] == "cancelled"
    assert world.service.invoke("current_time").ok
