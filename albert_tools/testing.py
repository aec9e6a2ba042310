"""Helpers for the tests of an application: an executor without side effects, a registry and a scratch workspace::

from albert_tools.testing import FakeExecutor, scratch_workspace

def test_my_tool():
    executor = FakeExecutor({"http_request": {"status": 200, "body": "hello"}})
    result = executor.run(SOURCE, {"url": "https://example.org"})
    assert result.value() == "hello"
    assert executor.calls == [("http_request", {"url": "https://example.org"})]
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from albert_tools.builtins.catalog import builtin_loaders
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.compile.program import compile_version
from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.result import ToolResult
from albert_tools.engine.model.validation import violations
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.workspace.workspace import Workspace
from albert_tools.service import SyncToolService

#: The answer to a tool call: a value, a `Failure` to raise, or a function of the arguments that returns a value or raises a
#: `Failure`.
Answer = Any


def registry(*primitives: Primitive, standard: bool = True) -> ToolRegistry:
    """A registry without saved tools: the given primitives, and the built-in ones unless `standard` is false.

    Raises:
        ValueError: two primitives have the same name.
    """
    return ToolRegistry(primitives, loaders=builtin_loaders() if standard else None)


class FakeExecutor:
    """Checks a source and runs it in the sandbox. Its tool calls are answered from `answers`.

    No tool is run and nothing is saved. `calls` lists the calls in order, each as name and arguments. A call without an answer
    fails with `permission_denied`.

    Args:
        answers: The answers by tool name, see `Answer`.
        primitives: Primitives that the source may call, in addition to the built-in ones.
        limits: The limits of a run.
    """

    def __init__(
        self, answers: Mapping[str, Answer] | None = None, *primitives: Primitive, limits: RunLimits | None = None
    ) -> None:
        self.answers = dict(answers or {})
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.registry = registry(*primitives)
        self._limits = limits or RunLimits()

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Answer a program's call.

        Raises:
            Failure: the answer is a failure, or there is no answer.
        """
        self.calls.append((name, arguments))
        if name not in self.answers:
            raise Failure("permission_denied", f"the test has no answer for {name}", rule="test", tool=name)
        return _given(self.answers[name], arguments)

    def run(self, source: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Check a source and run it once.

        Args:
            source: The source of a tool.
            arguments: Its arguments.

        Returns:
            The result; `result.value()` gives the output or raises the failure.

        Raises:
            SourceError: the source has errors.
            Exception: an exception other than `Failure` that a function among the answers raised.
        """
        return asyncio.run(self.run_async(source, arguments))

    async def run_async(self, source: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Like `run`, for use in a running event loop."""
        # A new thread has an empty stack, so a source of any depth is read however deep the caller's stack is.
        version = await asyncio.to_thread(self._compiled, source)
        log: list[str] = []
        mistakes: list[Exception] = []

        async def answer(name: str, given: dict[str, Any], key: str) -> Any:
            try:
                return self.call(name, given)
            except Failure:
                raise
            except Exception as mistake:
                mistakes.append(mistake)
                raise Failure("internal_error", f"the test's answer for {name} failed", tool=name) from mistake

        sandbox = Sandbox(self._limits, idle=1)
        before = len(self.calls)
        given = version.definition.with_defaults(arguments or {})
        wrong = violations(given, version.definition.parameters_schema())
        if wrong:
            message = f"{version.name}: " + "; ".join(v["message"] for v in wrong)
            return ToolResult(version.name, error=Failure("invalid_arguments", message, details={"violations": wrong}))
        try:
            output = await sandbox.run(version.program, given, call=answer, log=log.append)
            return ToolResult(version.name, output, log="".join(log), calls=len(self.calls) - before)
        except Failure as failure:
            return ToolResult(version.name, error=failure, log="".join(log), calls=len(self.calls) - before)
        finally:
            await sandbox.close()
            if mistakes:
                raise mistakes[0]

    def _compiled(self, source: str) -> ToolVersion:
        return compile_version(check_or_raise(source, self.registry), "")


def _given(answer: Answer, arguments: dict[str, Any]) -> Any:
    if callable(answer):
        answer = answer(arguments)
    if isinstance(answer, Failure):
        raise answer
    return answer


def with_answers(primitives: Iterable[Primitive], answers: Mapping[str, Answer]) -> tuple[list[Primitive], list[str]]:
    """Primitives with answers in place of their functions, for a service whose rules and record are real.

    Args:
        primitives: The application's primitives.
        answers: The answers by the name of a primitive, built-in or the application's. An answer must match the result's schema.

    Returns:
        The arguments `primitives` and `builtins` of `ToolService.open`.

    Raises:
        ValueError: there is no primitive of that name.
    """
    own = {primitive.name: primitive for primitive in primitives}
    for name in answers:
        original = own.get(name) or builtin_loaders([name])[name]()
        definition = replace(original.definition, sandbox=False)
        function = partial(_answer_named, answers[name])
        own[name] = replace(
            original, definition=definition, function=function, context=None, is_async=False, preview=None
        )
    return [*own.values()], [name for name in builtin_loaders() if name not in own]


def _answer_named(answer: Answer, /, **arguments: Any) -> Any:
    return _given(answer, arguments)


class RecordedCall(NamedTuple):
    """A call in the record. Arguments are complete, but for secrets and long texts. `rule` is the rule that decided, or empty."""

    tool: str
    arguments: dict[str, Any]
    allowed: bool
    rule: str


def recorded_calls(service: SyncToolService) -> list[RecordedCall]:
    """The calls in the record of a service, those of programs included, in order.

    Raises:
        Failure: `damaged`, `io_error`.
    """
    return [
        RecordedCall(e.data["tool"], e.data["arguments"], e.kind == "call", e.data.get("rule_id") or "")
        for e in service.records(("call", "denied"))
    ]


class ScratchWorkspace:
    """A workspace in a temporary folder. A test can read its files."""

    def __init__(self, folder: Path, workspace: Workspace) -> None:
        self.folder = folder
        self.workspace = workspace

    def text(self, path: str) -> str:
        """The text of a file in the workspace."""
        return (self.folder / path).read_text(encoding="utf-8")

    def files(self) -> dict[str, str]:
        """All files in the workspace as text, by path."""
        paths = sorted(p for p in self.folder.rglob("*") if p.is_file())
        return {p.relative_to(self.folder).as_posix(): p.read_text(encoding="utf-8") for p in paths}


@contextmanager
def scratch_workspace(files: Mapping[str, str] | None = None) -> Iterator[ScratchWorkspace]:
    """Creates a temporary workspace with `files`, texts by path. Its `folder` can be the `workspace` of a service."""
    with tempfile.TemporaryDirectory(prefix="albert-test-") as name:
        folder = Path(name).resolve()
        (folder / ".albert").mkdir()
        for path, text in (files or {}).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        with Workspace(folder) as workspace:
            yield ScratchWorkspace(folder, workspace)
