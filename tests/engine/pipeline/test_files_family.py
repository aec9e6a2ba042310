"""Every tool of the files family, called by hand and from a program: with rules, records, time limits, approvals and budgets.

Each row is a call on its own files, with its result, the files afterwards, and the recorded effects.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from albert_tools import Budget
from albert_tools.engine.model.bounds import MAX_READ, MAX_WRITE
from albert_tools.engine.model.threads import THREAD_NAME, running_on
from albert_tools.engine.model.validation import violations
from albert_tools.engine.workspace import openat
from albert_tools.testing import registry
from tests.engine.conftest import Bench

FILES = {"a.txt": "one\ntwo\n", "sub/b.py": "print('two')\n", "bin.dat": "\0"}
FAMILY = {p.name: p for p in registry().primitives() if p.definition.family == "files"}
#: Rules under which no call needs approval.
OPEN: dict[str, Any] = {"tools": {name: {"allowed_in_modes": ["NORMAL"]} for name in FAMILY}}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def facts(path: str, text: str) -> dict[str, Any]:
    return {"path": path, "size_bytes": len(text.encode()), "sha256": sha(text)}


@dataclass(frozen=True)
class Row:
    """A call, its result, its effects, and the files that it changes (None: deleted). `touches` is a path that rules can forbid."""

    tool: str
    arguments: dict[str, Any]
    output: Any
    effects: list[dict[str, Any]]
    after: dict[str, str | None] = field(default_factory=dict)
    touches: str = "a.txt"

    def __str__(self) -> str:
        return "-".join([self.tool, *(k for k in self.arguments if k not in ("path", "content"))])


def effect(kind: str, path: str, text: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, **facts(path, text), **more}


def handle_of(data: bytes) -> str:
    return f"b3:{blake3(data).hexdigest()}"


ALL = FILES["a.txt"]
#: The handle of the value that `fill` stores.
NEW = handle_of(b"new")
ROWS = [
    Row("read_file", {"path": "a.txt"}, ALL, [effect("read", "a.txt", ALL)]),
    Row("read_file", {"path": "a.txt", "offset": 2, "limit": 1}, "two\n", [effect("read", "a.txt", "two\n", line=2)]),
    Row(
        "write_file",
        {"path": "a.txt", "content": "new"},
        facts("a.txt", "new"),
        [effect("write", "a.txt", "new")],
        {"a.txt": "new"},
    ),
    Row(
        "write_file",
        {"path": "n.txt", "content": "new", "create_only": True},
        facts("n.txt", "new"),
        [effect("write", "n.txt", "new")],
        {"n.txt": "new"},
        "n.txt",
    ),
    Row(
        "write_file",
        {"path": "a.txt", "content": "new", "append": True},
        facts("a.txt", ALL + "new"),
        [effect("write", "a.txt", ALL + "new")],
        {"a.txt": ALL + "new"},
    ),
    Row(
        "edit_file",
        {"path": "a.txt", "old_text": "two", "new_text": "2"},
        {**facts("a.txt", "one\n2\n"), "line": 2},
        [effect("write", "a.txt", "one\n2\n")],
        {"a.txt": "one\n2\n"},
    ),
    Row(
        "read_bytes",
        {"path": "bin.dat"},
        {"handle": handle_of(b"\0"), "size_bytes": 1, "next_offset": None},
        [effect("read", "bin.dat", "\0", handle=handle_of(b"\0"))],
        touches="bin.dat",
    ),
    Row(
        "read_bytes",
        {"path": "a.txt", "offset": 1, "limit": 2},
        {"handle": handle_of(b"ne"), "size_bytes": 2, "next_offset": 3},
        [effect("read", "a.txt", "ne", handle=handle_of(b"ne"), offset=1)],
    ),
    Row(
        "write_bytes",
        {"path": "a.txt", "handle": NEW},
        facts("a.txt", "new"),
        [effect("write", "a.txt", "new", handle=NEW)],
        {"a.txt": "new"},
    ),
    Row(
        "write_bytes",
        {"path": "a.txt", "handle": NEW, "append": True},
        facts("a.txt", ALL + "new"),
        [effect("write", "a.txt", ALL + "new", handle=NEW)],
        {"a.txt": ALL + "new"},
    ),
    Row(
        "list_directory",
        {"path": "sub"},
        [{"path": "sub/b.py", "type": "file", "size_bytes": 13}],
        [{"kind": "read", "path": "sub", "entries": 1}],
        touches="sub",
    ),
    Row(
        "delete_file",
        {"path": "a.txt"},
        {**facts("a.txt", ALL), "type": "file"},
        [effect("delete", "a.txt", ALL, type="file")],
        {"a.txt": None},
    ),
    Row(
        "move_file",
        {"source": "a.txt", "target": "sub/c.txt"},
        facts("sub/c.txt", ALL),
        [
            effect("delete", "a.txt", ALL, moved_to="sub/c.txt"),
            effect("write", "sub/c.txt", ALL, moved_from="a.txt"),
        ],
        {"a.txt": None, "sub/c.txt": ALL},
    ),
    Row(
        "move_file",
        {"source": "a.txt", "target": "sub/b.py", "overwrite": True},
        facts("sub/b.py", ALL),
        [effect("delete", "a.txt", ALL, moved_to="sub/b.py"), effect("write", "sub/b.py", ALL, moved_from="a.txt")],
        {"a.txt": None, "sub/b.py": ALL},
        "sub/b.py",
    ),
    Row(
        "copy_file",
        {"source": "a.txt", "target": "sub/c.txt"},
        facts("sub/c.txt", ALL),
        [effect("read", "a.txt", ALL), effect("write", "sub/c.txt", ALL)],
        {"sub/c.txt": ALL},
    ),
    Row(
        "copy_file",
        {"source": "bin.dat", "target": "a.txt", "overwrite": True},
        facts("a.txt", "\0"),
        [effect("read", "bin.dat", "\0"), effect("write", "a.txt", "\0")],
        {"a.txt": "\0"},
    ),
    Row(
        "make_directory",
        {"path": "x/y"},
        {"path": "x/y", "created": True},
        [{"kind": "write", "path": p, "size_bytes": 0, "type": "directory"} for p in ("x", "x/y")],
        {"x": "", "x/y": ""},
        "x",
    ),
    Row("file_info", {"path": "a.txt"}, None, [effect("read", "a.txt", ALL)]),
    Row(
        "find_files",
        {"pattern": "*.{txt,py}"},
        {"paths": ["a.txt", "sub/b.py"], "truncated": False},
        [{"kind": "read", "path": ".", "entries": 2}],
        touches=".",
    ),
    Row(
        "search_text",
        {"pattern": "t.o", "path": "."},
        {
            "matches": [
                {"path": "a.txt", "line": 2, "text": "two"},
                {"path": "sub/b.py", "line": 1, "text": "print('two')"},
            ],
            "truncated": False,
            "files": 2,
            "skipped": 1,
        },
        [{"kind": "read", "path": ".", "size_bytes": 21, "entries": 2}],
        touches=".",
    ),
]
CHANGING = [row for row in ROWS if row.after]


def test_every_tool_has_a_row() -> None:
    assert {row.tool for row in ROWS} == set(FAMILY)


@pytest.fixture
def make(make_bench: Callable[..., Bench]) -> Callable[..., Bench]:
    def made(rules: Any = None, **options: Any) -> Bench:
        bench = make_bench(governance=OPEN if rules is None else rules, primitives=[], **options)
        fill(bench)
        return bench

    return made


def fill(bench: Bench) -> None:
    for path, text in FILES.items():
        (bench.work / path).parent.mkdir(exist_ok=True)
        (bench.work / path).write_text(text)
    contents = bench.service.service.contents(None)
    assert contents is not None
    contents.put(b"new")


def files(bench: Bench) -> dict[str, str]:
    """The files and folders of the workspace without Albert's own. A folder is an empty text."""
    found = sorted(p for p in bench.work.rglob("*") if ".albert" not in p.parts)
    return {str(p.relative_to(bench.work)): p.read_text() if p.is_file() else "" for p in found}


def expected(row: Row) -> dict[str, str]:
    changed: dict[str, str | None] = {"sub": "", **FILES, **row.after}
    return {path: text for path, text in sorted(changed.items()) if text is not None}


def as_dicts(effects: Any) -> list[dict[str, Any]]:
    found = [e.as_dict() for e in effects]
    return [{k: v for k, v in e.items() if k != "tool"} for e in found]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_call_by_hand(make: Any, row: Row) -> None:
    bench = make()
    result = bench.service.invoke(row.tool, row.arguments)
    output = result.value()
    if row.output is not None:
        assert output == row.output
    assert violations(output, FAMILY[row.tool].definition.result) == []
    assert as_dicts(result.effects) == row.effects
    assert files(bench) == expected(row)
    written = sum(e["size_bytes"] for e in row.effects if e["kind"] == "write")
    assert result.budget_consumed.get("bytes_written", 0) == written


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_call_from_a_program(make: Any, row: Row) -> None:
    bench = make()
    given = ", ".join(f"{name}={value!r}" for name, value in row.arguments.items())
    bench.define(f"return tools.{row.tool}({given})")
    result = bench.service.invoke("t")
    output = result.value()
    assert row.output is None or output == row.output
    assert as_dicts(result.effects) == row.effects
    assert files(bench) == expected(row)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_forbidden_path(make: Any, row: Row) -> None:
    rules = {"tools": {row.tool: {"allowed_in_modes": ["NORMAL"], "forbidden_paths": [f"./{row.touches}"]}}}
    if row.touches == ".":
        rules = {"deny": [row.tool]}
    bench = make(rules)
    result = bench.service.invoke(row.tool, row.arguments)
    assert result.error.code == "permission_denied"
    assert result.error.rule == ("deny" if row.touches == "." else f"tools.{row.tool}.forbidden_paths")
    assert result.effects == ()
    assert files(bench) == {"sub": "", **FILES}


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("path", ["/etc/passwd", "../a.txt", "/proc/self/root/etc/passwd"])
def test_a_path_outside_the_workspace(make: Any, row: Row, path: str) -> None:
    bench = make()
    for name in FAMILY[row.tool].paths:
        result = bench.service.invoke(row.tool, {**row.arguments, name: path})
        assert result.error.denied or result.error.details["violations"][0]["rule"] == "path_traversal"
        assert result.effects == ()
    assert files(bench) == {"sub": "", **FILES}


@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("write_file", {"path": "a", "content": "", "create_only": True, "append": True}, "excludes"),
        ("write_file", {"path": "", "content": ""}, "min_length"),
        ("read_file", {"path": "a.txt", "offset": 0}, "minimum"),
        ("read_file", {"path": "a\0"}, "nul"),
        ("read_bytes", {"path": "a.txt", "offset": -1}, "minimum"),
        ("read_bytes", {"path": "a.txt", "limit": 0}, "minimum"),
        ("write_bytes", {"path": "a.txt", "handle": "b3:12"}, "hash"),
        ("write_bytes", {"path": "a", "handle": NEW, "create_only": True, "append": True}, "excludes"),
        ("edit_file", {"path": "a.txt", "old_text": "", "new_text": "x"}, "min_length"),
        ("edit_file", {"path": "a.txt", "old_text": "x"}, "required"),
        ("list_directory", {"path": "a/../b"}, "path_traversal"),
        ("delete_file", {}, "required"),
        ("move_file", {"source": "a.txt"}, "required"),
        ("copy_file", {"source": "a.txt", "target": 1}, "type"),
        ("make_directory", {"path": "x" * 5000}, "max_length"),
        ("file_info", {"path": "a.txt", "follow": True}, "unknown"),
        ("find_files", {"pattern": ""}, "min_length"),
        ("find_files", {"pattern": "*", "type": "socket"}, "enum"),
        ("find_files", {"pattern": "[a"}, "pattern"),
        ("find_files", {"pattern": "*", "limit": 10_001}, "maximum"),
        ("find_files", {"pattern": "*", "exclude": ["a"] * 1001}, "max_items"),
        ("search_text", {"pattern": "("}, "pattern"),
        ("search_text", {"pattern": "a", "limit": 0}, "minimum"),
        ("search_text", {"pattern": "a", "include": ["../x"]}, "pattern"),
    ],
)
def test_invalid_arguments(bench_of_files: Bench, tool: str, arguments: dict[str, Any], rule: str) -> None:
    error = bench_of_files.error(tool, **arguments)
    assert error.code in ("invalid_arguments", "permission_denied")
    assert rule in [v["rule"] for v in error.details["violations"]]
    assert files(bench_of_files) == {"sub": "", **FILES}


def test_the_limit_of_a_read_is_at_most_a_gibibyte(bench_of_files: Bench) -> None:
    assert bench_of_files.value("read_file", path="a.txt", limit=2**30) == ALL
    assert bench_of_files.error("read_file", path="a.txt", limit=2**30 + 1).code == "invalid_arguments"


@pytest.fixture(scope="module")
def bench_of_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("files").resolve(), governance=OPEN, primitives=[])
    fill(made)
    yield made
    made.service.close()


# Time.


class Stall:
    """A file system that doesn't answer. The threads of the service's calls wait until `answer` is called."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._answers = threading.Event()

    def wait(self) -> None:
        if threading.current_thread().name == THREAD_NAME:
            self.reached.set()
            self._answers.wait(60)

    def answer(self) -> None:
        """Let the threads continue, and wait until they have ended."""
        self._answers.set()
        while running_on():
            time.sleep(0.01)


@pytest.fixture
def stall(monkeypatch: pytest.MonkeyPatch) -> Callable[[Bench], Stall]:
    open_folder = openat.open_folder

    def stalled(bench: Bench) -> Stall:
        made = Stall()

        def waiting(root: int, parts: Any, *, at_once: bool = False) -> int:
            if at_once:
                # Nothing is in memory.
                raise BlockingIOError
            made.wait()
            return open_folder(root, parts)

        monkeypatch.setattr(openat, "open_folder", waiting)
        return made

    return stalled


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_after_a_timeout_a_call_has_no_effect(make: Any, stall: Any, row: Row) -> None:
    # On a busy machine the thread of the call may not start within a short time.
    for seconds in (0.1, 1, 10):
        bench = make({"tools": {row.tool: {"allowed_in_modes": ["NORMAL"], "timeout_seconds": seconds}}})
        stalled = stall(bench)
        result = bench.service.invoke(row.tool, row.arguments)
        reached = stalled.reached.is_set()
        stalled.answer()
        assert result.error.code == "timeout"
        assert result.effects == ()
        assert files(bench) == {"sub": "", **FILES}
        if reached:
            return
    pytest.fail("the call never started")


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_after_its_cancellation_a_call_has_no_effect(make: Any, stall: Any, row: Row) -> None:
    bench = make()
    stalled = stall(bench)

    async def main() -> None:
        task = asyncio.create_task(bench.service.service.invoke(row.tool, row.arguments))
        while not stalled.reached.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run_coroutine_threadsafe(main(), bench.service._loop).result()
    stalled.answer()
    assert files(bench) == {"sub": "", **FILES}


# People, and budgets.


class Person:
    """A person who does something first, and then says yes once."""

    def __init__(self, first: Callable[[], object] = lambda: None) -> None:
        self.first = first
        self.asked = 0

    async def __call__(self, question: Any) -> bool:
        self.asked += 1
        if self.asked > 1:
            return False
        self.first()
        return True


ASKED = {"tools": {name: {"requires_approval_in_modes": ["NORMAL"]} for name in FAMILY}}


@pytest.mark.parametrize("row", [r for r in CHANGING if r.tool != "make_directory"], ids=str)
def test_an_approval_applies_to_the_files_that_the_person_saw(make: Any, row: Row) -> None:
    """If a file changes between the question and the answer, the person is asked again."""
    for path in row.after:
        person = Person()
        bench = make(ASKED, ask=person)
        person.first = lambda bench=bench, path=path: (bench.work / path).write_text("other")  # type: ignore[misc]
        error = bench.error(row.tool, **row.arguments)
        assert (error.code, person.asked) == ("permission_denied", 2)
        assert files(bench) == dict(sorted({"sub": "", **FILES, path: "other"}.items()))


@pytest.mark.parametrize("row", CHANGING, ids=str)
def test_a_person_says_yes(make: Any, row: Row) -> None:
    person = Person()
    bench = make(ASKED, ask=person)
    assert bench.service.invoke(row.tool, row.arguments).ok
    assert person.asked == 1
    assert files(bench) == expected(row)


def test_deleting_asks_by_default(make: Any) -> None:
    bench = make({})
    for row in ROWS:
        if row.tool in ("delete_file", "move_file"):
            error = bench.error(row.tool, **row.arguments)
            assert (error.code, error.rule) == (
                "suspended",
                "shipped.categories.system_delete.requires_approval_in_modes",
            )
    assert files(bench) == {"sub": "", **FILES}


@pytest.mark.parametrize("row", [r for r in CHANGING if r.tool not in ("delete_file", "make_directory")], ids=str)
def test_a_budget_of_bytes(make: Any, row: Row) -> None:
    size = sum(e["size_bytes"] for e in row.effects if e["kind"] == "write")
    bench = make()

    def opened(most: int) -> str:
        token = str(bench.service.within(lambda s: s.open_session("c", budget=Budget(bytes_written=most)))[1])
        # A session reads only what it has stored.
        bench.service.within(lambda s: s.contents(token).put(b"new"))
        return token

    if size > 1:
        error = bench.service.invoke(row.tool, row.arguments, session=opened(size - 1)).error
        assert (error.code, error.rule) == ("budget_exceeded", "lease.budget.bytes_written")
        assert files(bench) == {"sub": "", **FILES}
    token = opened(size)
    assert bench.service.invoke(row.tool, row.arguments, session=token).ok
    more = bench.service.invoke("write_file", {"path": "z", "content": "z"}, session=token)
    assert more.error.rule == "lease.budget.bytes_written"


def test_a_rule_about_the_size_of_files(make: Any) -> None:
    section = {"allowed_in_modes": ["NORMAL"], "max_file_size_mb": 0.00001}
    bench = make({"tools": dict.fromkeys(FAMILY, section)})
    (bench.work / "l.txt").write_text("line\n" * 10)
    for tool, arguments in (
        ("read_file", {"path": "l.txt"}),
        ("read_file", {"path": "l.txt", "offset": 2}),
        ("write_file", {"path": "a.txt", "content": "x" * 11}),
        ("write_file", {"path": "a.txt", "content": "xxx", "append": True}),
        ("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "eleven"}),
        ("read_bytes", {"path": "l.txt"}),
        ("read_bytes", {"path": "l.txt", "offset": 2}),
        ("write_bytes", {"path": "a.txt", "handle": NEW, "append": True}),
        ("copy_file", {"source": "l.txt", "target": "n.txt"}),
    ):
        error = bench.error(tool, **arguments)
        assert (error.code, error.rule) == ("too_large", "max_file_size_mb"), tool
        assert "hint" in error.as_dict()
    assert bench.value("read_file", path="l.txt", offset=2, limit=2) == "line\nline\n"
    assert bench.value("read_bytes", path="l.txt", offset=2**63 - 1)["size_bytes"] == 0
    assert bench.value("read_bytes", path="l.txt", offset=49, limit=2**30)["size_bytes"] == 1
    # A search skips files that are too large to be read.
    assert bench.value("search_text", pattern="line")["skipped"] == 3
    assert bench.value("file_info", path="l.txt")["size_bytes"] == 50


@pytest.mark.parametrize("mib", [17, pytest.param(100, marks=pytest.mark.slow)])
def test_files_of_the_size_that_the_owner_allows(make: Any, mib: int) -> None:
    bench = make({"tools": {n: {"max_file_size_mb": mib} for n in ("read_file", "write_file", "copy_file")}})
    size = mib * 1024 * 1024
    text = "x" * (size - 1) + "\n"
    assert bench.value("write_file", path="large.txt", content=text)["size_bytes"] == size
    assert bench.value("copy_file", source="large.txt", target="copy.txt")["sha256"] == sha(text)
    assert bench.value("read_file", path="copy.txt")["size_bytes"] == size
    bench.define('text = tools.read_file(path="large.txt"); return tools.write_file(path="again.txt", content=text)')
    assert bench.value("t")["sha256"] == sha(text)
    error = bench.error("write_file", path="large.txt", content="x", append=True)
    assert (error.code, error.rule) == ("too_large", "max_file_size_mb")


def test_the_owner_can_allow_what_a_read_can_ask_for(make: Any) -> None:
    bench = make({"tools": {n: {"max_file_size_mb": 1024} for n in ("read_bytes", "read_file", "write_file")}})
    with open(bench.work / "large", "wb") as file:
        file.truncate(MAX_WRITE + 1)
    assert bench.value("read_bytes", path="large", limit=MAX_READ)["size_bytes"] == MAX_WRITE + 1
    assert bench.error("read_bytes", path="large", limit=MAX_READ + 1).code == "invalid_arguments"
    # A text must fit in an output.
    with open(bench.work / "lines", "wb") as file:
        file.writelines([b"x" * 1023 + b"\n"] * (MAX_WRITE // 1024 + 2))
    for offset in (1, 2):
        error = bench.error("read_file", path="lines", offset=offset)
        assert (error.code, error.rule) == ("too_large", None)
    # No call makes a file larger than a call can write.
    with open(bench.work / "large", "wb") as file:
        file.truncate(MAX_WRITE)
    error = bench.error("write_file", path="large", content="x", append=True)
    assert (error.code, error.hint, error.rule) == ("too_large", "write several files", None)


@pytest.mark.parametrize("tool", ["find_files", "search_text", "list_directory"])
def test_forbidden_folders_are_not_entered(make: Any, tool: str) -> None:
    bench = make({"tools": {tool: {"allowed_in_modes": ["NORMAL"], "forbidden_paths": ["sub", "secret*"]}}})
    (bench.work / "secret.txt").write_text("two")
    arguments: dict[str, Any] = {
        "find_files": {"pattern": "*"},
        "search_text": {"pattern": "two"},
        "list_directory": {"recursive": True},
    }[tool]
    output = bench.value(tool, **arguments)
    assert "sub/b.py" not in str(output)
    if tool == "search_text":
        assert [m["path"] for m in output["matches"]] == ["a.txt"]


def test_the_root_is_not_deleted_moved_or_replaced(make: Any) -> None:
    bench = make()
    for path in (".", str(bench.work), "./"):
        for tool, arguments in (
            ("delete_file", {"path": path}),
            ("move_file", {"source": path, "target": "x"}),
            ("move_file", {"source": "a.txt", "target": path, "overwrite": True}),
            ("copy_file", {"source": "a.txt", "target": path, "overwrite": True}),
        ):
            assert bench.error(tool, **arguments).code == "not_a_file"
    assert bench.value("make_directory", path=".") == {"path": ".", "created": False}
    assert files(bench) == {"sub": "", **FILES}


def test_paths_in_results_can_be_passed_on(make: Any) -> None:
    bench = make()
    assert Path(bench.value("file_info", path=str(bench.work / "sub" / "b.py"))["path"]) == Path("sub/b.py")
    found = bench.value("find_files", pattern="b.*", path="sub")
    assert found["paths"] == ["sub/b.py"]
    assert bench.value("read_file", path=found["paths"][0]) == FILES["sub/b.py"]
