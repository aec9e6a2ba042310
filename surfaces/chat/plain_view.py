"""Shows a chat without a terminal: stdout gets the model's text, stderr a line for each call, its source and what it prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from albert_tools.engine.model.result import ToolResult
from albert_tools.surfaces.chat.call_line import call_line, verdict_of
from albert_tools.surfaces.chat.session import Began, Event, Finished, Printed, Remark, Text
from albert_tools.surfaces.chat.shown_lines import PrintedLines, source_of
from albert_tools.surfaces.text.console import Console, one_line
from albert_tools.surfaces.text.hints import command_line


class PlainView:
    """A listener for `ChatSession`, with the same methods as `TerminalView`.

    `home` is the value of ``--home``, which commands in a hint repeat.
    """

    def __init__(self, console: Console, home: str | None) -> None:
        self._console, self._home, self._open_line = console, home, False
        #: The questions that calls have left open.
        self.questions: set[str] = set()
        self._printed: dict[str, PrintedLines] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn of the model."""
        yield
        self._end_line()

    def __call__(self, event: Event) -> None:
        match event:
            case Text() if not self._console.json:
                self._console.untrusted(event.text, sys.stdout)
                self._open_line = not event.text.endswith("\n")
            case Began():
                self._end_line()
                self._show(source_of(event.name, event.arguments).splitlines())
                self._printed[event.id] = PrintedLines()
            case Printed():
                self._show(self._printed[event.id].add(event.text))
            case Finished():
                self._show(self._printed.pop(event.id, PrintedLines()).end())
                line = f"{call_line(event.name, event.arguments)} · {verdict_of(event.result)[0]}"
                self._console.note(f"{'✓' if event.result.ok else '✗'} {line}")
                self._question(event.result)
            case Remark():
                self.remark(event.text)

    def _show(self, lines: list[str]) -> None:
        for line in lines:
            self._console.note(f"  │ {line}")

    def _question(self, result: ToolResult) -> None:
        """Print the command that answers the question for which a call waits."""
        if result.error is None or result.error.code != "suspended" or "approval" not in result.error.details:
            return
        approval = result.error.details["approval"]
        self.questions.add(approval)
        # The definition of a tool has no run that could be resumed.
        resume, what = (["--resume"], " and makes it") if "run" in result.error.details else ([], "")
        answer = command_line(self._home, "approvals", "answer", approval, "once", *resume)
        self._console.note(f"  `{answer}` allows the call{what}")

    def _end_line(self) -> None:
        if self._open_line:
            self._console.write("\n")
            self._open_line = False

    def remark(self, text: str) -> None:
        """Print a line about the chat."""
        self._console.note(f"! {one_line(text)}")
