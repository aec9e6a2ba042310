"""Putting one text in the place of another that is there exactly once, and saying why it can't be done.

A model mends an edit in one turn if it is told what is wrong with it: where the text occurs too often, or what in the file is
nearest to it. Nearest is what differs in white space only, then where its first line occurs. All of it is search for plain text, in
time that is linear in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from albert_tools.engine.model.failure import Failure

#: Places that are told of.
_TOLD = 10


def edited(text: str, old: str, new: str, path: str) -> tuple[str, int]:
    """`text` with `new` in the place of `old`, and the line, from 1, where it begins. `path` is for the messages.

    Raises:
        Failure: `invalid_arguments`: `old` is not there exactly once, or is `new`. `details` has `occurrences`, of which there may
            be more than are counted, and `lines`, where they begin.
    """
    if old == new:
        raise _failure("the old text and the new one are the same", "say what is to change", 0, [])
    places = list(_places(text, old))
    if len(places) == 1:
        at = places[0]
        return text[:at] + new + text[at + len(old) :], _line(text, at)
    if places:
        lines = [_line(text, at) for at in places[:_TOLD]]
        more = len(places) > _TOLD
        count = f"more than {_TOLD} times" if more else f"{len(places)} times"
        shown = ", ".join(map(str, lines)) + (", …" if more else "")
        raise _failure(
            f"the old text occurs {count} in {path!r}, and must occur once: lines {shown}",
            "give more of what stands before or behind it, so that it occurs once",
            len(places),
            lines,
        )
    message, hint, lines = _nearest(text, old, path)
    raise _failure(message, hint, 0, lines)


def _places(text: str, old: str) -> Iterator[int]:
    """Where `old` begins, overlaps included; one more than are told of at the most."""
    at = text.find(old)
    for _ in range(_TOLD + 1):
        if at < 0:
            return
        yield at
        at = text.find(old, at + 1)


def _nearest(text: str, old: str, path: str) -> tuple[str, str, list[int]]:
    none = f"the old text does not occur in {path!r}"
    for changed, said in (
        (old.replace("\r\n", "\n").replace("\n", "\r\n"), "the file's lines end with \\r\\n: write \\r\\n for \\n"),
        (old.replace("\r\n", "\n"), "the file's lines end with \\n: write \\n for \\r\\n"),
    ):
        at = text.find(changed) if changed != old else -1
        if at >= 0:
            return f"{none} with these line ends, but with others in line {_line(text, at)}", said, [_line(text, at)]
    wanted = [line.strip() for line in old.strip().splitlines()]
    have = [line.strip() for line in text.split("\n")]
    firsts = [n for n, line in enumerate(have, 1) if wanted and line == wanted[0]] if wanted and wanted[0] else []
    # Tried from a bounded number of places, or a file of equal lines would take the square of its length.
    whole = [n for n in firsts[:_TOLD] if have[n - 1 : n - 1 + len(wanted)] == wanted]
    if whole:
        hint = "copy it from read_file, with every space and newline"
        return f"{none} so, but with other white space in line {whole[0]}", hint, whole
    if firsts:
        shown = ", ".join(map(str, firsts[:_TOLD]))
        several = "lines" if len(firsts) > 1 else "line"
        hint = f"its first line stands in {several} {shown}; read_file from there and copy what follows"
        return none, hint, firsts[:_TOLD]
    return none, "copy it from read_file, exactly as it stands there", []


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _failure(message: str, hint: str, occurrences: int, lines: list[int]) -> Failure:
    details: dict[str, Any] = {"occurrences": occurrences, "lines": lines}
    return Failure("invalid_arguments", message, hint=hint, details=details)
