"""What an application's own tests want: a registry, an executor without side effects, a clock, a scratch workspace.

Nothing of the package uses this module::

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from albert_tools.builtins.catalog import builtin_loaders
from albert_tools.engine.call.registry import ToolRegistry
from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.compile.program import compile_version
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.result import ToolResult
from albert_tools.engine.model.schema import violations
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.workspace.workspace import Workspace

#: The answer of a tool: a value, a `Failure` to raise, or a function of the arguments that gives or raises one.
Answer = Any


def registry(*primitives: Primitive, standard: bool = True) -> ToolRegistry:
    """A registry without a store: the given primitives, beside the standard ones unless told otherwise.

    Raises:
        ValueError: two have the same name.
    """
    return ToolRegistry(primitives, loaders=builtin_loaders() if standard else None)


class FakeExecutor:
    """Checks and runs sources for real, in the sandbox, while every tool call is answered from `answers`.

    Nothing is read, written, sent or started, and nothing is saved. `calls` lists what was asked, in order: name and
    arguments. A tool without an answer fails with `permission_denied`.
    """

    def __init__(
        self, answers: Mapping[str, Answer] | None = None, *primitives: Primitive, limits: RunLimits | None = None
    ) -> None:
        self.answers = dict(answers or {})
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.registry = registry(*primitives)
        self._limits = limits or RunLimits()

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """What a program's call of `name` gets.

        Raises:
            Failure: the answer is one, or there is none.
        """
        self.calls.append((name, arguments))
        if name not in self.answers:
            raise Failure("permission_denied", f"the test has no answer for {name}", rule="test", tool=name)
        answer = self.answers[name]
        if callable(answer):
            answer = answer(arguments)
        if isinstance(answer, Failure):
            raise answer
        return answer

    def run(self, source: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Check a source and run it once; `result.value()` gives the output or raises the failure.

        Raises:
            SourceError: the source is refused.
            Exception: whatever a function among the answers raised, if it isn't a `Failure`: that is the test's own mistake.
        """
        return asyncio.run(self.run_async(source, arguments))

    async def run_async(self, source: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """As `run`, inside an event loop."""
        version = compile_version(check_or_raise(source, self.registry), "")
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
        given = {p.name: p.default for p in version.definition.parameters if not p.required} | dict(arguments or {})
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


class FakeClock:
    """A clock that stands until it is moved: call it for the time, in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move it on.

        Raises:
            ValueError: `seconds` is negative; a monotonic clock doesn't go back.
        """
        if seconds < 0:
            raise ValueError("a monotonic clock doesn't go back")
        self.now += seconds


class ScratchWorkspace:
    """A contained workspace in a temporary folder, with a look at its files."""

    def __init__(self, folder: Path, workspace: Workspace) -> None:
        self.folder = folder
        self.workspace = workspace

    def text(self, path: str) -> str:
        """The text of a file in it."""
        return (self.folder / path).read_text(encoding="utf-8")

    def files(self) -> dict[str, str]:
        """Every text file in it, by path."""
        found = sorted(p for p in self.folder.rglob("*") if p.is_file())
        return {p.relative_to(self.folder).as_posix(): p.read_text(encoding="utf-8") for p in found}


@contextmanager
def scratch_workspace(files: Mapping[str, str] | None = None) -> Iterator[ScratchWorkspace]:
    """A workspace that holds `files` and is gone afterwards; its `folder` can be a service's `workspace`."""
    with tempfile.TemporaryDirectory(prefix="albert-test-") as name:
        folder = Path(name).resolve()
        (folder / ".albert").mkdir()
        for path, text in (files or {}).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        with Workspace(folder) as workspace:
            yield ScratchWorkspace(folder, workspace)
