"""Running the examples of a source before it is saved.

Each ``@example(...)`` gets a scratch workspace with its `files`, calls the tool with its `arguments`, and compares. Files are
read and written for real, there; whatever would reach further (network, shell) is answered by the example's `stubs`::

    stubs={"http_request": {"status": 200, …}}          # the same answer each time
    stubs={"http_request": {"$each": [{…}, {…}]}}        # one answer (or failure) after the other
    stubs={"http_request": {"$fails": "network_error"}}  # a failure with that code
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from albert_tools.engine.check.check import Example
from albert_tools.engine.execute.pipeline import Pipeline, Surroundings
from albert_tools.engine.govern.contain import Workspace
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.definition import Json, ToolVersion
from albert_tools.engine.model.failure import CODES, Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.result import ToolInvocation, ToolResult

#: An example shows how a tool works; one that takes longer than this is not one.
MAX_SECONDS = 10.0


async def run_examples(
    version: ToolVersion, examples: tuple[Example, ...], pipeline: Pipeline
) -> list[dict[str, Json]]:
    """What went wrong, example by example: ``{line, message, expected, got}``; empty when all hold."""
    found = []
    for example in examples:
        problem = await _run(version, example, pipeline)
        if problem is not None:
            found.append({"line": example.line, **problem})
    return found


async def _run(version: ToolVersion, example: Example, pipeline: Pipeline) -> dict[str, Json] | None:
    try:
        stubs = {name: _stub(name, answer) for name, answer in example.stubs.items()}
    except ValueError as error:
        return {"message": str(error)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="albert-example-"))).resolve()
        workspace = stack.enter_context(Workspace(folder))
        try:
            for path, content in example.files.items():
                _place(folder, workspace, path, content)
        except Failure as failure:
            return {"message": f"its files can't be laid out: {failure.message}"}
        limits = RunLimits()
        limits = limits._replace(run_seconds=MAX_SECONDS, own_seconds=min(limits.own_seconds, MAX_SECONDS))
        surroundings = Surroundings(workspace, Governance(limits=limits), stubs, scratch=True)
        invocation = ToolInvocation(version.name, example.arguments)
        result = await pipeline.invoke(invocation, surroundings, unsaved=version)
        return _compare(example, result, workspace)


def _place(folder: Path, workspace: Workspace, path: str, content: str) -> None:
    parts = path.split("/")[:-1]
    if path.startswith("/") or ".." in parts:
        raise Failure("permission_denied", f"{path!r} is not a path inside the workspace")
    (folder.joinpath(*parts)).mkdir(parents=True, exist_ok=True)
    workspace.replace(path, content.encode())


def _compare(example: Example, result: ToolResult, workspace: Workspace) -> dict[str, Json] | None:
    if example.raises is not None:
        got = None if result.error is None else _kinds(result.error)
        if got is None:
            return {
                "message": f"it should fail with {example.raises}",
                "expected": example.raises,
                "got": result.output,
            }
        if example.raises not in got:
            return {
                "message": f"it should fail with {example.raises}",
                "expected": example.raises,
                "got": _told(result.error),
            }
    elif result.error is not None:
        return {"message": f"it failed: {result.error.message}", "got": _told(result.error), "hint": result.error.hint}
    elif example.has_result and not _same(_plain(example.result), result.output):
        return {"message": "the result is another", "expected": _plain(example.result), "got": result.output}
    for path, content in example.expect_files.items():
        try:
            held = workspace.read(path, 64 * 1024 * 1024).decode("utf-8", "replace")
        except Failure as failure:
            return {"message": f"there should be a file {path!r}: {failure.message}", "expected": content, "got": None}
        if held != content:
            return {"message": f"the file {path!r} holds something else", "expected": content, "got": held}
    return None


def _kinds(error: Failure | None) -> set[str]:
    """What an example may call a failure: its code, or the exception's name."""
    if error is None:
        return set()
    kinds = {error.code, str(error.details.get("type", "")), str(error.details.get("code", ""))}
    if error.code != "exception":
        kinds.add("ToolError")
    return kinds - {""}


def _told(error: Failure | None) -> Json:
    return None if error is None else {"code": error.code, "message": error.message, "line": error.line}


def _plain(value: Any) -> Any:
    """A constant of the source as it comes out of the boundary."""
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _same(a: Any, b: Any) -> bool:
    """Equal as Python has it, except that a bool is no number."""
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return bool(a == b)


def _stub(name: str, answer: Any) -> Callable[[dict[str, Any]], Any]:
    if isinstance(answer, dict) and "$fails" in answer:
        code = answer["$fails"]
        if code not in CODES:
            raise ValueError(f"the stub of {name} fails with {code!r}, which is not a code; for example: not_found")

        def fail(arguments: dict[str, Any]) -> Any:
            raise Failure(code, str(answer.get("message", f"{name} failed")), tool=name)

        return fail
    if isinstance(answer, dict) and "$each" in answer:
        left = list(answer["$each"])

        def each(arguments: dict[str, Any]) -> Any:
            if not left:
                raise Failure("permission_denied", f"the stub of {name} has no answer left", rule="scratch", tool=name)
            return _stub(name, left.pop(0))(arguments)

        return each
    return lambda arguments: _plain(answer)
