"""What a saved tool spares an agent: the round trips and the tokens of six tasks, call by call and by one call of a saved tool.

The model is a script. For each task it lists the calls that a model must make, with independent calls in one message, and what it
must write itself, for example the text of a changed file. The calls are made by a service, so the outputs in the messages are real.
At each round trip the model reads all earlier messages again. The tokens are counted by OpenAI's encoding o200k_base.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

from albert_tools import SyncToolService

TOOLS = Path(__file__).parent.parent / "examples" / "tools"
RULES = {
    "tools": {
        "run_tests": {"allowed_in_modes": ["NORMAL"], "timeout_seconds": 600},
        "git": {"allowed_operations": ["ADD", "COMMIT"]},
    }
}
#: Tokens of a message's role and delimiters, as OpenAI counts them.
FRAME = 4

Calls = list[tuple[str, dict[str, Any]]]
#: Yields the calls of each message, receives their outputs, and returns the answer to the user.
Script = Generator[Calls, list[Any], str]


class Task(NamedTuple):
    """A task, the saved tool that does it with its arguments, and the calls without the saved tool."""

    request: str
    tool: str
    arguments: dict[str, Any]
    answer: str
    script: Callable[[Path, Task], Script]


class Cost(NamedTuple):
    """The cost of one conversation. `read` is the sum over all round trips."""

    trips: int
    read: int
    written: int


def table() -> list[str]:
    """The lines of the table."""
    count = tokenizer()
    if count is None:
        return ["bpe-openai is not installed: `pip install albert-tools[benchmarks]`"]
    lines = [
        "| task | | round trips | tokens read | tokens written | to write the tool once |",
        "|---|---|---:|---:|---:|---:|",
    ]
    totals = {"call by call": [0, 0, 0], "a saved tool": [0, 0, 0]}
    for task in TASKS:
        costs = {"call by call": _cost(task, task.script, count), "a saved tool": _cost(task, _saved, count)}
        source = sum(count(_source(tool)) for tool in _NEEDED.get(task.tool, (task.tool,)))
        for way, cost in costs.items():
            totals[way] = [a + b for a, b in zip(totals[way], cost, strict=True)]
            once = f"{source:,}" if way == "a saved tool" else ""
            lines.append(f"| {task.tool} | {way} | {cost.trips} | {cost.read:,} | {cost.written:,} | {once} |")
    ways = [totals["call by call"], totals["a saved tool"]]
    for way, total in totals.items():
        lines.append(f"| all | {way} | {' | '.join(f'{n:,}' for n in total)} | |")
    trips, read, written = (a / b for a, b in zip(*ways, strict=True))
    constant = _constant(count)
    whole = [total[1] + total[0] * constant for total in ways]
    return [
        *lines,
        "",
        f"A saved tool needs {trips:.1f} times fewer round trips, {read:.0f} times fewer tokens read and {written:.1f} times fewer",
        "tokens written. Each round trip also reads the constant part of the prompt, the descriptions of all tools:",
        f"{constant:,} tokens. With them, {whole[0]:,} and {whole[1]:,} tokens are read.",
    ]


def _source(tool: str) -> str:
    return (TOOLS / f"{tool}.tool").read_text(encoding="utf-8")


def tokenizer() -> Callable[[str], int] | None:
    """Counts the tokens of a text; None if the library is not installed."""
    try:
        import bpe_openai
    except ImportError:
        return None
    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text))


def _cost(task: Task, script: Callable[[Path, Task], Script], count: Callable[[str], int]) -> Cost:
    """Have the conversation in a new project, with a new home."""
    with tempfile.TemporaryDirectory(prefix="albert-spared-") as name:
        top = Path(name).resolve()
        project = _project(top / "project")
        with SyncToolService.open(home=top / "home", workspace=project, governance=RULES) as service:
            for tool in _NEEDED.get(task.tool, (task.tool,)):
                service.define(_source(tool))
            _, token = service.open_session("the benchmark")
            return _converse(service, token, script(project, task), task.request, count)


def _converse(service: SyncToolService, token: str, script: Script, request: str, count: Callable[[str], int]) -> Cost:
    context = FRAME + count(request)
    trips = read = written = 0
    outputs: list[Any] | None = None
    while True:
        trips, read = trips + 1, read + context
        try:
            calls = next(script) if outputs is None else script.send(outputs)
        except StopIteration as done:
            return Cost(trips, read, written + count(done.value))
        said = sum(count(tool) + count(json.dumps(arguments, ensure_ascii=False)) + FRAME for tool, arguments in calls)
        outputs = [service.invoke(tool, arguments, session=token).value() for tool, arguments in calls]
        written += said
        context += said + sum(FRAME + count(_text(output)) for output in outputs)


def _text(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def _constant(count: Callable[[str], int]) -> int:
    """The tokens of the descriptions of all tools that a session is offered."""
    with tempfile.TemporaryDirectory(prefix="albert-spared-") as name:
        project = _project(Path(name).resolve() / "project")
        with SyncToolService.open(home=Path(name) / "home", workspace=project, governance=RULES) as service:
            _, token = service.open_session("the benchmark")
            specs = service.tool_specs("openai", session=token)
            return count(json.dumps(specs, ensure_ascii=False))


# The scripts


def _saved(_: Path, task: Task) -> Script:
    yield [(task.tool, task.arguments)]
    return task.answer


def _replace(_: Path, task: Task) -> Script:
    path, find, replace = (task.arguments[name] for name in ("path", "find", "replace"))
    (text,) = yield [("read_file", {"path": path})]
    yield [("write_file", {"path": path, "content": text.replace(find, replace)})]
    return task.answer


def _merge(_: Path, task: Task) -> Script:
    left, right = yield [("read_file", {"path": task.arguments[side]}) for side in ("left", "right")]
    towns = dict(line.split(",") for line in right.splitlines())
    rows = [f"{line},{towns.get(line.partition(',')[0], '')}" for line in left.splitlines()]
    yield [("write_file", {"path": task.arguments["output"], "content": "\n".join(rows) + "\n"})]
    return task.answer


def _differences(_: Path, task: Task) -> Script:
    yield [("read_file", {"path": task.arguments[side]}) for side in ("old", "new")]
    return task.answer


def _log(_: Path, task: Task) -> Script:
    yield [("read_file", {"path": task.arguments["path"]})]
    return task.answer


def _report(project: Path, task: Task) -> Script:
    (found,) = yield [("find_files", {"pattern": "*"})]
    yield [("read_file", {"path": path}) for path in found["paths"]]
    report = "# Report\n\n## Lines\n\n- Python: 390 in 7 files\n- Markdown: 110 in 6 files\n\n## To do\n\n"
    report += "".join(f"- src/part{i}.py:{i + 2} check number {i}\n" for i in range(6))
    report += "\n## Broken links\n\n- docs/page4.md:2 page5.md\n\n## Duplicates\n\nNothing.\n"
    yield [("write_file", {"path": task.arguments["output"], "content": report})]
    return task.answer


def _commit(_: Path, task: Task) -> Script:
    given = task.arguments
    yield [("write_file", {"path": given["path"], "content": given["source"]})]
    yield [("run_tests", {"args": ["-q", given["tests"]]})]
    yield [("edit_file", {"path": given["path"], "old_text": given["wrong"], "new_text": given["right"]})]
    yield [("run_tests", {"args": ["-q", given["tests"]]})]
    yield [("git", {"operation": "ADD", "args": ["--", given["path"], given["tests"]]})]
    yield [("git", {"operation": "COMMIT", "args": ["-m", given["message"]]})]
    yield [("git_status", {})]
    return task.answer


# The tasks and their project

_CODE = "def area(width: int, height: int) -> int:\n    return width + height\n"
_TESTS = "from area import area\n\n\ndef test_area() -> None:\n    assert area(3, 4) == 12\n"

TASKS = (
    Task(
        "Replace 'colour' by 'color' in docs/style.md.",
        "find_and_replace",
        {"path": "docs/style.md", "find": "colour", "replace": "color"},
        "I replaced 40 occurrences in docs/style.md.",
        _replace,
    ),
    Task(
        "Merge people.csv and towns.csv by id into merged.csv.",
        "merge_csv",
        {"left": "people.csv", "right": "towns.csv", "key": "id", "output": "merged.csv"},
        "merged.csv has 60 rows; all of them matched.",
        _merge,
    ),
    Task(
        "What differs between old.json and new.json?",
        "json_diff",
        {"old": "old.json", "new": "new.json"},
        "Three values differ: option7 is false now, option19 is 1901, and option33 was removed.",
        _differences,
    ),
    Task(
        "Summarise server.log: levels, first and last time, the most frequent errors.",
        "summarise_log",
        {"path": "server.log"},
        "The log has 300 lines: 240 INFO, 45 WARNING, 15 ERROR, from 10:00 to 14:59. No error occurs twice.",
        _log,
    ),
    Task(
        "Write report.md about this project: lines by language, to do comments, broken links, duplicate files.",
        "project_report",
        {"output": "report.md"},
        "report.md lists 6 comments, 1 broken link and no duplicates.",
        _report,
    ),
    Task(
        f"Write area.py, run test_area.py, correct the sum to a product, test again, and commit both files:\n{_CODE}",
        "build_and_commit",
        {
            "path": "area.py",
            "source": _CODE,
            "wrong": "width + height",
            "right": "width * height",
            "tests": "test_area.py",
            "message": "Areas of rectangles",
        },
        "The tests pass, and both files are committed.",
        _commit,
    ),
)
#: The tools to define, callees first, if there are several.
_NEEDED = {
    "project_report": ("count_lines", "list_todos", "check_links", "duplicate_files", "project_report"),
}


def _project(folder: Path) -> Path:
    """A project of realistic size. It is the same in each run."""
    chance = random.Random(7)
    words = "the report describes how each request is handled and which limits apply to it".split()
    options: dict[str, Any] = {f"option{i}": i * 100 if i % 2 else i % 4 == 0 for i in range(40)}
    changed = {**options, "option7": False, "option19": 1901}
    del changed["option33"]
    levels = ["INFO"] * 16 + ["WARNING"] * 3 + ["ERROR"]

    def some(count: int) -> str:
        return " ".join(chance.sample(words, count))

    def at(minute: int) -> str:
        return f"2025-03-01 {10 + minute // 60}:{minute % 60:02}:00"

    files = {
        "docs/style.md": [f"{i}. The colour of {some(8)}." for i in range(40)],
        "people.csv": ["id,name,age", *(f"{i},Person {i},{20 + i % 50}" for i in range(60))],
        "towns.csv": ["id,town", *(f"{i},Town {i % 9}" for i in range(60))],
        "old.json": [json.dumps(options, indent=1)],
        "new.json": [json.dumps(changed, indent=1)],
        "server.log": [f"{at(i)} {levels[i % 20]} request {i} {some(5)}" for i in range(300)],
        "test_area.py": _TESTS.splitlines(),
        # Plugins of pytest that happen to be installed are not loaded.
        "pytest.ini": ["[pytest]", "addopts = --disable-plugin-autoload"],
    }
    for i in range(5):
        files[f"docs/page{i}.md"] = [f"# Page {i}", f"See [the next](page{i + 1}.md).", *(some(9) for _ in range(12))]
    for i in range(6):
        functions = [line for n in range(30) for line in (f"def f{n}(x):", f"    return x + {n}")]
        files[f"src/part{i}.py"] = [
            *(f"value_{n} = {n * i}" for n in range(i + 1)),
            f"# TODO: check number {i}",
            *functions,
        ]
    (folder / ".albert").mkdir(parents=True)
    for path, lines in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, env=environment, check=True)
    return folder
