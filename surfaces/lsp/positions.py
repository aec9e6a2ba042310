"""Places in a buffer, as the client counts them.

The checker counts lines and characters from 1. The Language Server Protocol counts from 0, and its columns are code units of the
encoding that was agreed on with the client; by default that is UTF-16, in which an emoji has two.
"""

from __future__ import annotations

import re

from lsprotocol import types

from albert_tools.grammar.diagnostic import Span

#: For each encoding of positions, Python's name of it and the bytes of a code unit.
_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
#: The ends of lines are the same for the protocol and for the checker. `str.splitlines` knows others too.
_LINE_END = re.compile("\r\n|\r|\n")
#: The checker leaves out this mark at the start of a source.
_MARK = "\ufeff"


class Places:
    """Converts places of a text."""

    def __init__(self, text: str, encoding: str | None) -> None:
        self._lines = _LINE_END.split(text)
        self._codec, self._size = _UNITS[encoding or "utf-16"]

    def range_of(self, span: Span) -> types.Range:
        """The range of a span."""
        return types.Range(self._place(span.line, span.column), self._place(span.end_line, span.end_column))

    def _place(self, line: int, column: int) -> types.Position:
        marked = line == 1 and self._lines[0].startswith(_MARK)
        return self.place(line - 1, column - 1 + marked)

    def place(self, line: int, column: int) -> types.Position:
        """The place before a character. Lines and characters count from 0."""
        text = self._lines[line] if line < len(self._lines) else ""
        return types.Position(line, len(text[:column].encode(self._codec, "surrogatepass")) // self._size)

    def line(self, at: types.Position) -> tuple[str, int]:
        """The line of a place, and the number of characters before the place. A place after the end of the line is its end."""
        text = self._lines[at.line] if at.line < len(self._lines) else ""
        units = text.encode(self._codec, "surrogatepass")[: at.character * self._size]
        return text, len(units.decode(self._codec, "replace"))

    def before(self, at: types.Position, most: int) -> str:
        """The text before a place, at most so many characters and lines."""
        text, column = self.line(at)
        return "\n".join([*self._lines[max(0, at.line - most) : at.line], text[:column]])[-most:]
