"""Shows a chat without a terminal: stdout gets the model's text, stderr one line for each call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from albert_tools.surfaces.chat.call_line import call_line, verdict_of
from albert_tools.surfaces.chat.session import Began, Event, Finished, Remark, Text
from albert_tools.surfaces.cli.console import Console, one_line


class PlainView:
    """A listener for `ChatSession`, with the same methods as `TerminalView`."""

    def __init__(self, console: Console) -> None:
        self._console, self._open_line = console, False

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
            case Finished():
                line = f"{call_line(event.name, event.arguments)} · {verdict_of(event.result)[0]}"
                self._console.note(f"{'✓' if event.result.ok else '✗'} {line}")
            case Remark():
                self.remark(event.text)

    def _end_line(self) -> None:
        if self._open_line:
            self._console.write("\n")
            self._open_line = False

    def remark(self, text: str) -> None:
        """Print a line about the chat."""
        self._console.note(f"! {one_line(text)}")
