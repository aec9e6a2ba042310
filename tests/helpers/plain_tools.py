"""Runs example tools under plain CPython, with the prelude and the real file primitives but without the sandbox.

An `@example` must mean the same to the service and to CPython, so the tests run it in both. This module compiles and executes
the unchanged source. A call goes to the example's stub, to the real primitive in a scratch workspace, or to another example
tool that runs in the same way. Any other call fails the test.
"""

from __future__ import annotations
import __future__

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Optional, TypedDict

from albert_tools.builtins.files.files import edit_file, read_file, write_file
from albert_tools.builtins.files.folders import file_info, list_directory
from albert_tools.engine.check.checker import Checked
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.example import Example
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.sandbox.worker.boundary_values import export
from albert_tools.engine.sandbox.worker.prelude import ToolError, prelude
from albert_tools.engine.workspace.workspace import Workspace

MAX_BYTES = 16 * 1024 * 1024
FILES = {p.name: p for p in (read_file, write_file, edit_file, file_info, list_directory)}
ANNOTATIONS = {"TypedDict": TypedDict, "Any": Any, "Literal": Literal, "Optional": Optional}


@dataclass
class Context:
    """The context that a file primitive gets."""

    workspace: Workspace
    remaining: float = 30.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def effect(self, kind: str, **facts: Any) -> None:
        """Settings that no file primitive needs here."""


@dataclass(frozen=True)
class Outcome:
    """The end of a call: a value, or the names that an example's `raises` may use (an exception's name, a code)."""

    value: Any = None
    raised: frozenset[str] = frozenset()
    message: str = ""


class Plain:
    """Runs tools by name in one scratch workspace."""

    def __init__(self, tools: Mapping[str, Checked], workspace: Workspace, stubs: Mapping[str, Any]) -> None:
        self._tools = tools
        self._context = Context(workspace)
        self._stubs = {
            name: list(answer["$each"]) if isinstance(answer, dict) and "$each" in answer else answer
            for name, answer in stubs.items()
        }

    def run(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """Call a tool as a user would."""
        try:
            return Outcome(self._run(name, arguments))
        except ToolError as error:
            return Outcome(raised=frozenset({"ToolError", error.code}), message=error.message)
        except Exception as error:
            return Outcome(raised=frozenset({type(error).__name__}), message=str(error))

    def _run(self, name: str, arguments: Mapping[str, Any]) -> Any:
        names = prelude(self._call, lambda *_: None) | ANNOTATIONS
        flags = __future__.annotations.compiler_flag
        code = compile(self._tools[name].source, "<tool>", "exec", flags=flags, dont_inherit=True)
        exec(code, names)  # noqa: S102 (an example of ours)
        return export(names[name](**arguments), MAX_BYTES)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in self._stubs:
            return self._stubbed(name)
        arguments = export(_named(self._definition(name), args) | kwargs, MAX_BYTES)
        if name in self._tools:
            try:
                return self._run(name, arguments)
            except ToolError as error:
                raise ToolError(error.message, tool=name, code=error.code, retryable=error.retryable) from error
        try:
            return export(asyncio.run(call_primitive(FILES[name], arguments, self._context)), MAX_BYTES)
        except Failure as failure:
            raise ToolError(failure.message, tool=name, code=failure.code, retryable=failure.retryable) from failure

    def _stubbed(self, name: str) -> Any:
        answer = self._stubs[name]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, dict) and "$fails" in answer:
            raise ToolError(f"{name} failed", tool=name, code=answer["$fails"])
        return export(answer, MAX_BYTES)

    def _definition(self, name: str) -> ToolDefinition:
        return self._tools[name].definition if name in self._tools else FILES[name].definition


@contextmanager
def scratch(files: Mapping[str, str]) -> Iterator[tuple[Workspace, Path]]:
    """Yield a workspace that contains some files, and its folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for path, content in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode())
        with Workspace(folder) as workspace:
            yield workspace, folder


def problem(name: str, example: Example, tools: Mapping[str, Checked]) -> str:
    """Return what differs from the example, or "" if the example holds."""
    with scratch(example.files) as (workspace, folder):
        got = Plain(tools, workspace, example.stubs).run(name, example.arguments)
        if example.raises is not None:
            if example.raises not in got.raised:
                return f"should raise {example.raises}; got {got}"
        elif got.raised:
            return f"failed: {got}"
        elif example.has_result and repr(got.value) != repr(export(example.result, MAX_BYTES)):
            return f"expected {example.result!r}\n     got {got.value!r}"
        for path, content in example.expect_files.items():
            held = (folder / path).read_bytes().decode() if (folder / path).is_file() else None
            if held != content:
                return f"{path} should hold {content!r}; it holds {held!r}"
    return ""


def _named(definition: ToolDefinition, args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip((p.name for p in definition.parameters), args, strict=False))
