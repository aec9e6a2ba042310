"""Runs a source in CPython with the prelude, and records what it does: result, log, and the calls with their places."""

from __future__ import annotations

import copy
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import CodeType
from typing import Any, Literal, NamedTuple, Optional

from albert_tools.engine.check.checker import Checked
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.prelude import ToolError, prelude
from tests.helpers.answers import Answers

MAX_BYTES = 16 * 1024 * 1024
MAX_CALLS = 100_000


class TooManyCalls(BaseException):
    """A run makes more than `MAX_CALLS` calls of primitives. No program can catch it."""


class Place(NamedTuple):
    """Where a call of a primitive is made: as in `PlannedCall`."""

    line: int
    via: tuple[str, ...]
    tool: str


class Made(NamedTuple):
    """A call of a primitive: its arguments, and its answer, or None if it failed."""

    place: Place
    arguments: dict[str, Any]
    answer: Any


@dataclass
class Recorded:
    """What a run did.

    Attributes:
        outcome: The result, or [code, message] of the error.
        failed: Whether it ended with an error.
        calls: The calls of primitives, in order; also those of the saved tools that it called.
        asked: The calls that the source itself made: name and arguments.
    """

    outcome: Any = None
    failed: bool = False
    log: str = ""
    calls: list[Made] = field(default_factory=list)
    asked: list[tuple[str, Any]] = field(default_factory=list)


def recorded(
    source: str,
    name: str,
    arguments: dict[str, Any],
    catalog: Any,
    saved: Mapping[str, Checked],
    answers: Answers,
) -> Recorded:
    """Run a tool. `saved` has the saved tools that it can call; all others in the catalogue are answered by `answers`.

    Raises:
        TooManyCalls: The run does not end soon.
    """
    return _Run(catalog, saved, answers).run(source, name, copy.deepcopy(arguments), None)


@cache
def _compiled(source: str) -> CodeType:
    return compile(source, "<tool>", "exec", dont_inherit=True)


class _Run:
    def __init__(self, catalog: Any, saved: Mapping[str, Checked], answers: Answers) -> None:
        self.catalog = catalog
        self.saved = saved
        self.answers = answers
        self.calls: list[Made] = []

    def run(self, source: str, name: str, arguments: dict[str, Any], outer: Place | None) -> Recorded:
        found = Recorded(calls=self.calls)
        log = io.StringIO()

        def call(tool: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            assert not args, "generated programs name their arguments"
            try:
                given = export(kwargs, MAX_BYTES)
            except Unexportable as error:
                raise ToolError(error.sentence(f"an argument of {tool}"), tool=tool, code=error.code) from None
            found.asked.append((tool, given))
            # The frame of the program is above this one and the prelude's.
            line = sys._getframe(2).f_lineno
            place = Place(line, (), tool) if outer is None else Place(outer.line, (*outer.via, outer.tool), tool)
            return self.answer(tool, given, place)

        def print_(*values: Any, **options: Any) -> None:
            print(*values, **options, file=log)

        names = {**prelude(call, print_), "Any": Any, "Literal": Literal, "Optional": Optional}
        try:
            exec(_compiled(source), names)  # noqa: S102 (written by the generator)
            found.outcome = export(names[name](**arguments), MAX_BYTES)
        except Unexportable as error:
            found.outcome, found.failed = [error.code, error.sentence("the result")], True
        except ToolError as error:
            found.outcome, found.failed = [error.code, error.message], True
        except Exception as error:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            found.outcome, found.failed = ["exception", text], True
        found.log = log.getvalue()
        return found

    def answer(self, tool: str, given: dict[str, Any], place: Place) -> Any:
        checked = self.saved.get(tool)
        if checked is None:
            definition = self.catalog.get(tool)
            if len(self.calls) >= MAX_CALLS:
                raise TooManyCalls
            self.calls.append(Made(place, given, None))
            at = len(self.calls) - 1
            try:
                answer = self.answers.answer(definition, given, place)
            except Failure as failure:
                raise ToolError(failure.message, tool=tool, code=failure.code, retryable=failure.retryable) from None
            self.calls[at] = self.calls[at]._replace(answer=answer)
            return copy.deepcopy(answer)
        inner = self.run(checked.source, tool, copy.deepcopy(given), place)
        if inner.failed:
            code, message = inner.outcome
            raise ToolError(message, tool=tool, code=code)
        return inner.outcome
