"""Wraps lines to the width of a terminal: between words, with a hanging indent, measured in cells.

A terminal itself wraps within words and continues in column 1, which makes the columns of a table unreadable. Output into a pipe
is not wrapped, because a program reads each line as one record. Text is wrapped after it was coloured; escape sequences count no
cells. The package `wcwidth` knows more about emoji, but each command would take 24 ms longer.
"""

from __future__ import annotations

import re
import unicodedata

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_LAID_OUT = re.compile(r"^(?:\s|[-*+>|] |\d+[.)] )", re.MULTILINE)
_MARKS = frozenset({"Mn", "Mc", "Me", "Cf"})
_PIECE = re.compile(r" +|[^ ]+")


def cells(text: str) -> int:
    """Cells that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if _joins(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _joins(char: str) -> bool:
    """Whether a character is shown in the cells of the one before it: a mark, a joiner, or a later letter of a Hangul syllable."""
    return unicodedata.category(char) in _MARKS or "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"


def first_cells(text: str, room: int) -> str:
    """The longest start of `text` that fits into `room` cells."""
    taken = 0
    for i, c in enumerate(text):
        taken += cells(c)
        if taken > room:
            return text[:i]
    return text


def last_cells(text: str, room: int) -> str:
    """The longest end of `text` that fits into `room` cells."""
    taken = 0
    for i in range(len(text), 0, -1):
        taken += cells(text[i - 1])
        if taken > room:
            return text[i:]
    return text


def folded(text: str, width: int | None, hang: int = 0) -> str:
    """`text` in lines of at most `width` cells. Continuation lines start in column `hang`.

    A word that is wider than a line is not split, because a person may copy a hash or a path. If `width` is None, nothing is
    wrapped.
    """
    if width is None:
        return text
    return "\n".join(_folded(line, width, min(hang, width // 2)) for line in text.split("\n"))


def flowing(text: str) -> str:
    """Prose with each paragraph on one line, ready for wrapping. Lists and indented text stay unchanged."""
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(p if _LAID_OUT.search(p) else " ".join(p.split("\n")) for p in paragraphs)


def cut(text: str, width: int | None) -> str:
    """One line, cut to fewer than `width` cells. If the last cell were filled, the cursor would move to the next line."""
    if width is None or cells(text) < width:
        return text
    return first_cells(text, width - 2) + "…"


def _folded(line: str, width: int, hang: int) -> str:
    if _wide(line) <= width:
        return line
    out: list[str] = []
    current, blanks = "", ""
    for piece in _PIECE.findall(line):
        if piece[0] == " ":
            blanks = piece
        elif current.strip() and _wide(current) + len(blanks) + _wide(piece) > width:
            out.append(current)
            current, blanks = " " * hang + piece, ""
        else:
            current, blanks = current + blanks + piece, ""
    return "\n".join([*out, current])


def unstyled(text: str) -> str:
    """The text without colours."""
    return _STYLE.sub("", text)


def _wide(text: str) -> int:
    return cells(unstyled(text))
