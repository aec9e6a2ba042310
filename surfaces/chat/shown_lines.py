"""What a chat shows of a call below its line: the source that it is about, and what its program prints. Both are bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.reserved_names import SOURCE_TOOLS
from albert_tools.engine.model.visible_text import escape_invisible, one_line, safe

#: The most lines of one source, and of what one call prints.
MAX_LINES = 24
#: Characters of an incomplete line that are kept.
_MAX_LINE = 2000


def source_of(name: str, arguments: Mapping[str, Any]) -> str:
    """The beginning of the source that a call is about, with visible characters; empty if it is about none."""
    source = arguments.get("source")
    if name not in SOURCE_TOOLS or not isinstance(source, str):
        return ""
    lines = source.strip("\n").split("\n")
    shown = [safe(escape_invisible(line[:_MAX_LINE])) for line in lines[:MAX_LINES]]
    left = len(lines) - len(shown)
    return "\n".join([*shown, *([f"# … {left:,} more lines"] if left > 0 else [])])


class PrintedLines:
    """The lines that one call prints, as they become complete; at most `MAX_LINES` of them."""

    def __init__(self) -> None:
        self._line, self._left = "", MAX_LINES

    def add(self, text: str) -> list[str]:
        """The lines that a piece of text completes."""
        *complete, self._line = (self._line + text).split("\n")
        self._line = self._line[:_MAX_LINE]
        return self._shown(complete)

    def end(self) -> list[str]:
        """The last line, if it is not complete."""
        last, self._line = self._line, ""
        return self._shown([last] if last else [])

    def _shown(self, lines: list[str]) -> list[str]:
        shown = [one_line(line[:_MAX_LINE]) for line in lines[: max(0, self._left)]]
        if lines and len(lines) > self._left >= 0:
            shown.append("… the result has the rest")
            self._left = -1
        else:
            self._left -= len(lines)
        return shown
