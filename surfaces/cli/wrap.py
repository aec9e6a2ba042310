"""Lines that fit a terminal: folded between words, with a hanging indent, measured in cells.

A terminal folds by itself, in the middle of a word and back to its first column, where a table's second column can't be told
from its first. Into a pipe nothing is folded: there a line is a record. What is coloured is folded after it was coloured, so
escape sequences count for nothing.
"""

from __future__ import annotations

import os
import re
import unicodedata
from typing import TextIO

#: What a terminal has that doesn't say.
USUAL = 80
#: Nothing is folded to less than this.
NARROWEST = 20

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_LAID_OUT = re.compile(r"^(?:\s|[-*+>|] |\d+[.)] )", re.MULTILINE)
_PIECE = re.compile(r" +|[^ ]+")


def columns(stream: TextIO) -> int | None:
    """How many cells a line of the terminal behind `stream` has; None when it is none. ``COLUMNS`` goes first."""
    if not stream.isatty():
        return None
    said = os.environ.get("COLUMNS", "")
    try:
        found = int(said) if said.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        found = 0
    return max(found, NARROWEST) if found else USUAL


def cells(text: str) -> int:
    """How many cells of a terminal a visible text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def first_cells(text: str, room: int) -> str:
    """As much of the start as fits."""
    taken = 0
    for i, c in enumerate(text):
        taken += cells(c)
        if taken > room:
            return text[:i]
    return text


def last_cells(text: str, room: int) -> str:
    """As much of the end as fits."""
    taken = 0
    for i in range(len(text), 0, -1):
        taken += cells(text[i - 1])
        if taken > room:
            return text[i:]
    return text


def folded(text: str, width: int | None, hang: int = 0) -> str:
    """`text` in lines of at most `width` cells; what goes on in a second line stands under column `hang`.

    A word that is wider than a line stays whole, so that a hash or a path can be copied.
    """
    if width is None:
        return text
    return "\n".join(_folded(line, width, min(hang, width // 2)) for line in text.split("\n"))


def flowing(text: str) -> str:
    """Prose with each paragraph in one line, to be folded anew; lists and what is indented stay as they are."""
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(p if _LAID_OUT.search(p) else " ".join(p.split("\n")) for p in paragraphs)


def cut(text: str, width: int | None) -> str:
    """As much of one line as fits into less than `width` cells: a cursor past the last cell is on the next line."""
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
    """The text without its colours."""
    return _STYLE.sub("", text)


def _wide(text: str) -> int:
    return cells(unstyled(text))
