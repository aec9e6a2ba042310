"""Replaces a text that occurs exactly once in a file, or explains why the text can't be replaced.

With a good error, a model can correct its edit in one turn. If the text occurs several times, the error lists the places. If the
text does not occur, the error shows the most similar text: first a text that differs only in white space, then a text with the
same first line. All searches are for plain text and take time linear in the size of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from albert_tools.engine.model.failure import Failure

#: Places that a message lists.
_MAX_LISTED = 10


def edited(text: str, old: str, new: str, path: str) -> tuple[str, int]:
    """Replace `old` by `new`. Returns the new text and the line, from 1, where `new` begins. `path` is for messages.

    Raises:
        Failure: `invalid_arguments`: `old` does not occur exactly once, or equals `new`. `details` has `occurrences`, a count
            with an upper bound, and `lines`, the lines where the occurrences begin.
    """
    if old == new:
        raise _failure(
            "the old text and the new one are the same", "give the text to put in place of the old one", 0, []
        )
    places = list(_places(text, old))
    if len(places) == 1:
        at = places[0]
        return text[:at] + new + text[at + len(old) :], _line(text, at)
    if places:
        lines = [_line(text, at) for at in places[:_MAX_LISTED]]
        more = len(places) > _MAX_LISTED
        count = f"more than {_MAX_LISTED} times" if more else f"{len(places)} times"
        shown = ", ".join(map(str, lines)) + (", …" if more else "")
        raise _failure(
            f"the old text occurs {count} in {path!r}, and must occur once: lines {shown}",
            "add text from before or after it, so that it occurs once",
            len(places),
            lines,
        )
    message, hint, lines = _nearest(text, old, path)
    raise _failure(message, hint, 0, lines)


def _places(text: str, old: str) -> Iterator[int]:
    """The positions of `old`, including overlapping ones. Stops one after the number that a message lists."""
    at = text.find(old)
    for _ in range(_MAX_LISTED + 1):
        if at < 0:
            return
        yield at
        at = text.find(old, at + 1)


def _nearest(text: str, old: str, path: str) -> tuple[str, str, list[int]]:
    none = f"the old text does not occur in {path!r}"
    for changed, hint in (
        (
            old.replace("\r\n", "\n").replace("\n", "\r\n"),
            "the file's lines end with \\r\\n: write \\r\\n instead of \\n",
        ),
        (old.replace("\r\n", "\n"), "the file's lines end with \\n: write \\n instead of \\r\\n"),
    ):
        at = text.find(changed) if changed != old else -1
        if at >= 0:
            return f"{none} with these line ends, but with others in line {_line(text, at)}", hint, [_line(text, at)]
    wanted = [line.strip() for line in old.strip().splitlines()]
    have = [line.strip() for line in text.split("\n")]
    firsts = [n for n, line in enumerate(have, 1) if wanted and line == wanted[0]] if wanted and wanted[0] else []
    # Compare at a bounded number of places. Otherwise a file of equal lines would take quadratic time.
    whole = [n for n in firsts[:_MAX_LISTED] if have[n - 1 : n - 1 + len(wanted)] == wanted]
    if whole:
        hint = "copy it from read_file, with every space and newline"
        return f"{none} exactly, but with other white space in line {whole[0]}", hint, whole
    if firsts:
        shown = ", ".join(map(str, firsts[:_MAX_LISTED]))
        several = "lines" if len(firsts) > 1 else "line"
        hint = f"its first line is in {several} {shown}; read_file from there and copy what follows"
        return none, hint, firsts[:_MAX_LISTED]
    return none, "copy it exactly from read_file", []


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _failure(message: str, hint: str, occurrences: int, lines: list[int]) -> Failure:
    details: dict[str, Any] = {"occurrences": occurrences, "lines": lines}
    return Failure("invalid_arguments", message, hint=hint, details=details)
