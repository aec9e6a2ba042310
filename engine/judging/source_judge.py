"""Judges sources for the service: each source is parsed, checked, compiled or formatted in a process of its own.

Reading a hostile text takes time and memory, and parsers have flaws. So the service never reads a source. It sends the text to a
confined process, answers its questions about tools, and validates its answer. If the process exceeds its bounds, it is killed, and
the source has the finding ``check_limit``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec

from albert_tools.engine.judging.answers import Answer, FormatAnswer, Outline, Unbelievable
from albert_tools.engine.judging.judging_limits import (
    ALL_TASKS,
    BOUNDS,
    JUDGING,
    MAX_ANSWER,
    MAX_NAME,
    MAX_QUESTIONS,
    MAX_SECONDS,
)
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.sandbox.worker.child import broke_protocol
from albert_tools.engine.sandbox.worker.function_pool import Answer as AnswerQuestion
from albert_tools.engine.sandbox.worker.function_pool import FunctionPool
from albert_tools.engine.sandbox.worker.spawn import Spawned
from albert_tools.grammar.diagnostic import Diagnostic, Span
from albert_tools.grammar.source_error import SourceError
from albert_tools.grammar.source_text import source_text

if TYPE_CHECKING:
    from albert_tools.engine.judging.accept import CheckedSource
    from albert_tools.engine.model.definition import Json, ToolDefinition

_T = TypeVar("_T")

_NAME = "the judging process"
#: The failures of the process that are findings about the source.
_LIMITS = {
    "timeout": f"{MAX_SECONDS:g} s",
    "cpu_limit": f"{BOUNDS.cpu_seconds} s of processor time",
    "memory_limit": f"{BOUNDS.memory_bytes // MiB} MiB of memory, or deeper nesting than Python allows",
    "result_limit": f"{MAX_ANSWER // MiB} MiB for its result",
}


class Tools(Protocol):
    """The tools that a source may call."""

    def get(self, name: str) -> ToolDefinition | None:
        """The definition of the tool that a call of `name` currently reaches, or None."""

    def names(self) -> list[str]:
        """Every name that can be called."""

    def outdated(self, name: str) -> str | None:
        """Why a tool can't run, or None."""

    def look_alike(self, name: str) -> str | None:
        """An existing tool whose name could be mistaken for `name`, or None. None if `name` itself is a tool."""


class Judgement(NamedTuple):
    """The findings about a source. `checked` is None if and only if one of them is an error."""

    diagnostics: tuple[Diagnostic, ...]
    checked: CheckedSource | None


class SourceJudge:
    """Judges sources. One object per event loop. The first call starts the zygote; `close` ends it.

    `modules` are the modules of the tasks.
    """

    def __init__(self, modules: Sequence[str] = ALL_TASKS) -> None:
        self._pool = FunctionPool(_NAME, JUDGING, BOUNDS, seconds=MAX_SECONDS, max_bytes=MAX_ANSWER)
        self._pool.expect(modules)

    async def start(self, spawned: Spawned | None = None) -> None:
        """Start the zygote, or use the one that ``spawn_zygote(JUDGING)`` has started.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        await self._pool.start(spawned)

    async def close(self) -> None:
        """Kill all judging processes."""
        await self._pool.close()

    async def check(self, source: str | bytes, tools: Tools, *, compiled: bool = False) -> Judgement:
        """Check a source. With `compiled`, an accepted source also has a program.

        Raises:
            Failure: `sandbox_unavailable`, `sandbox_violation`; `internal_error` for a defect of the checker or the compiler.
        """
        # Formatting does not need this import.
        from albert_tools.engine.judging.accept import checked_source

        text = source_text(source)
        if isinstance(text, Diagnostic):
            return Judgement((text,), None)
        answers = _Answers(tools)
        answer = await self._ask("compile" if compiled else "check", text, Answer, answers.answer)
        if isinstance(answer, Diagnostic):
            return Judgement((answer,), None)
        if answer.defect is not None:
            raise _defect(answer.defect)
        if answer.tool is not None and answer.tool.name not in answers.known:
            # An honest process has asked whether the name is taken.
            answers.known[answer.tool.name] = await asyncio.to_thread(tools.get, answer.tool.name)
        try:
            if answer.tool is not None and await answers.look_alike(answer.tool.name) is not None:
                raise Unbelievable("a name that looks like another")
            checked = checked_source(answer, text, answers.known)
            if checked is not None and compiled and checked.program is None:
                raise Unbelievable("no program")
            return Judgement(answer.findings, checked)
        except Unbelievable as error:
            raise broke_protocol(_NAME, error) from None

    async def format(self, source: str) -> str:
        """The source in canonical form.

        Raises:
            SourceError: The source can't be parsed.
            Failure: See `check`.
        """
        text = source_text(source)
        if isinstance(text, Diagnostic):
            raise SourceError([text], source)
        answer = await self._ask("format", text, FormatAnswer)
        if isinstance(answer, Diagnostic):
            raise SourceError([answer], text)
        if answer.text is None:
            raise SourceError(answer.findings, text)
        return answer.text

    async def outline(self, source: str) -> Outline:
        """The public functions of a source, and the tools that it calls.

        Raises:
            Failure: See `check`.
        """
        text = source_text(source)
        outline = Outline([], []) if isinstance(text, Diagnostic) else await self._ask("outline", text, Outline)
        return Outline([], []) if isinstance(outline, Diagnostic) else outline

    async def _ask(self, task: str, text: str, form: type[_T], answer: AnswerQuestion | None = None) -> _T | Diagnostic:
        """The answer, after a check of its form. If the process exceeded its bounds, a finding says so."""
        try:
            reply = await self._pool.call({"task": task, "source": text}, answer)
            return msgspec.convert(reply, form)
        except msgspec.ValidationError as error:
            raise broke_protocol(_NAME, error) from None
        except Failure as failure:
            if failure.code in _LIMITS:
                return _too_much(_LIMITS[failure.code])
            if failure.code == "exception":
                raise _defect(failure.message) from None
            raise


class _Answers:
    """Answers questions about tools. `known` are the definitions in the answers; the pins are made from them."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self.known: dict[str, ToolDefinition | None] = {}
        self._listed = False
        self._like: tuple[str, str | None] = "", None

    async def answer(self, question: Any) -> Json:
        """The answer to ``{"tool": name}``, ``{"like": name}`` or ``{"names": true}``. Each question is asked once.

        Raises:
            Failure: `sandbox_violation` for any other question.
        """
        match question:
            case {"names": True} if not self._listed:
                self._listed = True
                return await asyncio.to_thread(self._tools.names)
            case {"tool": str() as name} if self._is_new(name):
                return await asyncio.to_thread(self._described, name)
            case {"like": str() as name} if not self._like[0] and len(name) <= MAX_NAME:
                return await self.look_alike(name)
        raise broke_protocol(_NAME, "an unexpected question")

    async def look_alike(self, name: str) -> str | None:
        """An existing tool whose name could be mistaken for `name`, or None."""
        if self._like[0] != name:
            self._like = name, await asyncio.to_thread(self._tools.look_alike, name)
        return self._like[1]

    def _is_new(self, name: str) -> bool:
        return name not in self.known and len(name) <= MAX_NAME and len(self.known) < MAX_QUESTIONS

    def _described(self, name: str) -> Json:
        definition = self.known[name] = self._tools.get(name)
        if definition is None:
            return None
        return [msgspec.to_builtins(definition), self._tools.outdated(name)]


def _too_much(limit: str) -> Diagnostic:
    return Diagnostic(
        "check_limit",
        f"checking this source needs more than {limit}, so it was stopped",
        Span(1, 1, 1, 1),
        hint="make it smaller and plainer: split it into several tools, and keep data in files",
    )


def _defect(message: str) -> Failure:
    return Failure(
        "internal_error",
        message,
        hint="write it in a simpler way; this is a defect of Albert Tools, please report it",
    )
