"""Markdown that arrives in pieces: divided into blocks that can be rendered one by one.

A block ends before a line that begins in the first column after an empty line, outside of code. So no block needs the text
after it.
"""

from __future__ import annotations

import re
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement

from albert_tools.surfaces.text.console import safe

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


class Blocks:
    """The blocks of one text. `rest` is the text of the block that is not complete."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line = self._fence = ""
        self._empty = False

    @property
    def rest(self) -> str:
        return "\n".join([*self._lines, self._line])

    def add(self, text: str) -> list[str]:
        """The blocks that are complete after the next piece of text."""
        blocks = []
        *complete, last = text.split("\n")
        for line in complete:
            line, self._line = self._line + line, ""
            if self._empty and not self._fence and line[:1].strip():
                blocks.append("\n".join(self._lines))
                self._lines = []
            self._lines.append(line)
            self._empty = not line.strip()
            fence = _FENCE.match(line)
            if self._fence:
                self._fence = "" if line.strip().startswith(self._fence) else self._fence
            elif fence:
                self._fence = fence[1]
        self._line += last
        return [block for block in blocks if block.strip()]

    def end(self) -> list[str]:
        """The last block."""
        last = self.rest
        self.__init__()  # type: ignore[misc]
        return [last] if last.strip() else []


class _Heading(Heading):
    """A heading at the left, as in a report."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _Heading}


def markdown(text: str) -> Markdown:
    """Untrusted markdown for a terminal. HTML is shown as text, and the address of a link is shown beside it."""
    made = _Markdown("", hyperlinks=False)
    made.markup = safe(text)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    # An entity could stand for an invisible character.
    made.parsed = parser.disable("entity").parse(made.markup)
    return made
