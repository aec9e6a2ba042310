"""Shows a chat on a terminal: the model's text as markdown while it arrives, and each call as one line.

The model's text is indented. So a line in the first column is always ours, and no model can imitate a call, a remark or a question.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console as Rich
from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.syntax import Syntax
from rich.text import Text as Line

from albert_tools.grammar.wrap import cut
from albert_tools.surfaces.chat.call_line import call_line, duration, verdict_of
from albert_tools.surfaces.chat.markdown_blocks import Blocks, markdown
from albert_tools.surfaces.chat.session import Began, Event, Finished, Printed, Remark, Text
from albert_tools.surfaces.chat.shown_lines import PrintedLines, source_of
from albert_tools.surfaces.text.console import Console, one_line, safe

#: Seconds between two drawings of the incomplete part, and its most lines.
_PAUSE, _MAX_LINES = 0.12, 12


class TerminalView:
    """A listener for `ChatSession`, for one terminal. Its lines are only drawn inside `turn`."""

    def __init__(self, console: Console) -> None:
        self._rich = Rich(highlight=False, markup=False, no_color=not console.out_colour, emoji=False)
        self._live: Live | None = None
        self._drawing: asyncio.Task[None] | None = None
        self._blocks = Blocks()
        self._running: dict[str, tuple[str, float]] = {}
        self._printed: dict[str, PrintedLines] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn of the model. Inside it, the incomplete block and the running calls are drawn below the text."""
        self._open()
        try:
            yield
        finally:
            self._print_blocks(self._blocks.end())
            self._running.clear()
            self._printed.clear()
            self._close()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A question to the user. Nothing is drawn inside it."""
        self._print_blocks(self._blocks.end())
        self._close()
        try:
            yield
        finally:
            self._open()

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

    def _open(self) -> None:
        live = Live(
            get_renderable=self._draft, console=self._rich, auto_refresh=False, transient=True, redirect_stderr=False
        )
        self._live = live
        live.start()
        self._drawing = asyncio.get_running_loop().create_task(_draw(live))

    def _close(self) -> None:
        if self._live is not None and self._drawing is not None:
            self._drawing.cancel()
            self._live.stop()
            self._live = None

    def _draft(self) -> RenderableType:
        """What is not complete: the last lines of the text, and the running calls."""
        lines = safe(self._blocks.rest[-4000:]).splitlines()[-_MAX_LINES:]
        shown: list[RenderableType] = [Padding(Line("\n".join(lines)), (0, 0, 0, 2))] if any(lines) else []
        now, width = time.monotonic(), self._rich.width - 10
        for text, began in self._running.values():
            shown.append(Line(f"◌ {cut(text, width)} {now - began:.0f} s", style="dim"))
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
        self._rich.print(what, soft_wrap=False)

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


async def _draw(live: Live) -> None:
    """Draw regularly. Rich's own thread would draw between the lines that this thread prints."""
    while True:
        live.refresh()
        await asyncio.sleep(_PAUSE)
