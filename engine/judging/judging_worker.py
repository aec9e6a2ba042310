"""The judging process's own code: it checks, compiles, formats or outlines one source, and has no authority.

A zygote imports this module and the modules of the tasks, with Lark and RestrictedPython, and forks a process for each source
(`function_worker`). The service validates every answer (`answers`), because a source may be hostile.
"""

from __future__ import annotations

import codecs
import gc
from importlib import import_module
from typing import Any

from albert_tools.engine.judging.judging_limits import MAX_ANSWER, RECURSION
from albert_tools.engine.sandbox.worker.function_worker import Ask, FunctionWorker

#: Modules and encodings that are otherwise loaded at their first use. After the fork, the process can't load anything.
_LATE_MODULES = ("difflib", "unicodedata")
_LATE_ENCODINGS = ("unicode_escape", "raw_unicode_escape", "latin-1")

#: Uses most of the checker and the compiler, with and without findings.
_REHEARSAL = '''
import json


class Row(TypedDict):
    name: str
    size: NotRequired[int]


@tool(timeout=5)
@example(arguments={"path": "a"}, result=[])
def work(path: str, limit: int = 3, *, mode: Literal["a", "b"] | None = "a") -> list[Row]:
    """Do the work.

    Args:
        path: The file.
    """
    rows: list[Row] = []
    for i, (name, size) in enumerate(sorted({"a": 1, **{"b": 2}}.items(), key=lambda item: -item[1])):
        try:
            if size > limit and mode != "b" or not name:
                rows.append(_row(f"{name!r:>{limit}} of {path}", size=size + i * 2))
            elif i in (1, 2):
                continue
            else:
                raise ToolError("no", code="not_found")
        except (ToolError, ValueError) as error:
            print(error.message, json.dumps([row["name"] for row in rows[1:] if row]))
    match rows:
        case [{"name": str() as first}, *_]:
            rows[0]["name"] = first.upper()
        case _:
            pass
    return [row for row in parallel(_row(name) for name in ("a", "b")) if row] + rows


def _row(name: str, size: int = 0) -> Row:
    """Make a row."""
    assert name
    return Row(name=name, size=size)
'''


def prepare(modules: list[str]) -> FunctionWorker:
    """The worker, before the fork. `modules` are the modules of its tasks; each has a table ``TASKS``."""
    for name in _LATE_MODULES:
        import_module(name)
    for encoding in _LATE_ENCODINGS:
        codecs.lookup(encoding)
    # The trees of a source have no cycles worth collecting, and the process ends with its answer.
    gc.set_threshold(50_000, 10, 10)
    tasks = {task: work for name in modules for task, work in import_module(name).TASKS.items()}

    def judge(request: Any, ask: Ask) -> Any:
        return tasks[request["task"]](request["source"], ask)

    # This computes the parser's table.
    judge({"task": next(iter(tasks)), "source": ""}, lambda _: None)
    sources = (_REHEARSAL, _REHEARSAL.replace("limit", "x", 1).replace("rows[1:]", "rows[1"))
    rehearsals = [{"task": task, "source": source} for task in tasks for source in sources]
    return FunctionWorker(judge, rehearsals, RECURSION, MAX_ANSWER)
