"""``$'…'``: the quotes in which a backslash writes characters, as C does it."""

from __future__ import annotations

import re

from albert_tools.engine.shell.reading_limits import Unreadable

_ONE = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ITSELF = "\\'\"?"
_NUMBERS = (
    (re.compile(r"x([0-9A-Fa-f]{1,2})"), 16),
    (re.compile(r"u([0-9A-Fa-f]{1,4})"), 16),
    (re.compile(r"U([0-9A-Fa-f]{1,8})"), 16),
    (re.compile(r"([0-7]{1,3})"), 8),
)


def ansi_c(source: str, at: int) -> tuple[str, int]:
    """The text from behind ``$'``, and the position behind its end.

    Raises:
        Unreadable: it has no end, or writes what isn't plain text: NUL ends it early, bytes beyond ASCII make half a character.
    """
    found: list[str] = []
    while True:
        char = source[at : at + 1]
        if not char:
            raise Unreadable("a quote $' is never closed")
        if char == "'":
            return "".join(found), at + 1
        if char != "\\":
            found.append(char)
            at += 1
            continue
        after = source[at + 1 : at + 2]
        if after in _ONE:
            found.append(_ONE[after])
            at += 2
        elif after and after in _ITSELF:
            found.append(after)
            at += 2
        elif after == "c" or source.startswith("x{", at + 1):
            raise Unreadable("$'…' writes a control character")
        else:
            at = _numbered(source, at + 1, found)


def _numbered(source: str, at: int, found: list[str]) -> int:
    for pattern, base in _NUMBERS:
        number = pattern.match(source, at)
        if number:
            value = int(number[1], base)
            wide = source[at] in "uU"
            if value == 0 or (not wide and value > 0x7F) or value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
                raise Unreadable("$'…' writes what is no plain text")
            found.append(chr(value))
            return number.end()
    # Any other backslash stays.
    found.append("\\")
    return at
