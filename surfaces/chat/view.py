"""Shows a chat on a terminal, above the input line: the model's text as markdown while it arrives, and each call as one line.

The model's text is indented. So a line in the first column is always ours, and no model can imitate a call, a remark or a question.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

from rich.console import Console as Rich
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.syntax import Syntax
from rich.text import Text as Line

from albert_tools.grammar.wrap import cut
from albert_tools.surfaces.chat.call_line import call_line, duration, verdict_of
from albert_tools.surfaces.chat.input_line import InputLine
from albert_tools.surfaces.chat.markdown_blocks import Blocks, markdown
from albert_tools.surfaces.chat.session import Began, Event, Finished, Printed, Remark, Text
from albert_tools.surfaces.chat.shown_lines import PrintedLines, source_of
from albert_tools.surfaces.text.console import Console, one_line, safe

#: Seconds between two drawings of the incomplete part, and its most lines.
_PAUSE, _MAX_LINES = 0.12, 12


class TerminalView:
    """A listener for `ChatSession`, for one terminal."""

    def __init__(self, console: Console, line: InputLine) -> None:
        self._rich = Rich(highlight=False, markup=False, no_color=not console.out_colour, emoji=False)
        self._line = line
        self._blocks = Blocks()
        #: When the turn began; None if there is none.
        self._began: float | None = None
        self._running: dict[str, tuple[str, float]] = {}
        self._printed: dict[str, PrintedLines] = {}
        #: What is to be printed after the question that is open; None if none is.
        self._held: list[RenderableType] | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn of the model. Inside it, the incomplete block and the running calls are shown above the input line."""
        self._began = time.monotonic()
        drawing = asyncio.get_running_loop().create_task(self._draw())
        try:
            yield
        finally:
            drawing.cancel()
            self._print_blocks(self._blocks.end())
            self._running.clear()
            self._printed.clear()
            self._began = None
            self._show_draft()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """A question to the user. What is printed inside it appears after it."""
        held: list[RenderableType] = []
        try:
            async with self._line.lent():
                self._held = held
                try:
                    yield
                finally:
                    self._held = None
        finally:
            for each in held:
                self._print(each)

    def __call__(self, event: Event) -> None:
        match event:
            case Text():
                self._print_blocks(self._blocks.add(event.text))
            case Began():
                self._print_blocks(self._blocks.end())
                self._running[event.id] = (call_line(event.name, event.arguments), time.monotonic())
                self._printed[event.id] = PrintedLines()
                self._print_source(source_of(event.name, event.arguments))
            case Printed():
                self._print_below([Line(line, "dim") for line in self._printed[event.id].add(event.text)])
            case Finished():
                last = self._printed.pop(event.id, PrintedLines()).end()
                self._print_below([Line(line, "dim") for line in last])
                _, began = self._running.pop(event.id, ("", time.monotonic()))
                self._print(self._result_line(event, time.monotonic() - began))
            case Remark():
                self._print_blocks(self._blocks.end())
                self.remark(event.text)

    def remark(self, text: str) -> None:
        """Print a line of ours about the chat."""
        self._print(Line(f"! {one_line(text)}", style="yellow"))

    def sent(self, text: str) -> None:
        """Print a message of the user."""
        self._print(Line("› " + safe(text).replace("\n", "\n  ")))

    async def _draw(self) -> None:
        while True:
            self._show_draft()
            await asyncio.sleep(_PAUSE)

    def _show_draft(self) -> None:
        with self._rich.capture() as drawn:
            self._rich.print(self._draft())
        self._line.show(drawn.get())

    def _draft(self) -> RenderableType:
        """What is not complete: the last lines of the text, the running calls, and the messages that wait."""
        if self._began is None:
            return Group()
        lines = safe(self._blocks.rest[-4000:]).splitlines()[-_MAX_LINES:]
        shown: list[RenderableType] = [Padding(Line("\n".join(lines)), (0, 0, 0, 2))] if any(lines) else []
        now, width = time.monotonic(), self._rich.width - 10
        for text, began in self._running.values() or [("answering", self._began)]:
            shown.append(Line(f"◌ {cut(text, width)} {now - began:.0f} s", style="dim"))
        shown += [Line(f"› {cut(one_line(text), width)} · waits", style="dim") for text in self._line.waiting]
        return Group(*shown)

    def _print_blocks(self, blocks: list[str]) -> None:
        for block in blocks:
            lines = self._rich.render_lines(Padding(markdown(block), (0, 0, 0, 2)), pad=False)
            # Some elements bring empty lines of their own.
            drawn = [i for i, line in enumerate(lines) if any(segment.text.strip() for segment in line)]
            shown = lines[drawn[0] : drawn[-1] + 1] if drawn else []
            self._print(Segments([segment for line in [*shown, []] for segment in [*line, Segment.line()]]))

    def _print_source(self, source: str) -> None:
        if source:
            shown = Syntax(source, "python", theme="ansi_dark", background_color="default").highlight(source)
            self._print_below(shown.split("\n"))

    def _print_below(self, lines: Iterable[Line]) -> None:
        """Print lines that belong to a call. Each begins with a bar, so it can't imitate a line of ours."""
        for line in lines:
            shown = Line("  │ ", style="dim") + line
            shown.truncate(self._rich.width - 1, overflow="ellipsis")
            self._print(shown)

    def _print(self, what: RenderableType) -> None:
        if self._held is not None:
            self._held.append(what)
            return
        with self._line.above():
            self._rich.print(what, soft_wrap=False)
        self._show_draft()

    def _result_line(self, event: Finished, seconds: float) -> Line:
        ok = event.result.ok
        verdict, style = verdict_of(event.result)
        end = f" · {duration(seconds)} · {verdict}"
        width = self._rich.width - 3
        room = max(20, width - min(len(end), width * 2 // 3))
        line = Line("✓ " if ok else "✗ ", style="green" if ok else "red")
        line.append(cut(call_line(event.name, event.arguments), room), style="default")
        line.append(cut(end, self._rich.width - len(line) - 1), style=style)
        return line
