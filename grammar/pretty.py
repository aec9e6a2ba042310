"""Documents that know where they may be broken, and the printer that decides.

After Wadler's "A prettier printer": a document is text, a possible line break, an indented part, or a group, which is
printed on one line when it fits and broken at all its own breaks when it doesn't.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Line:
    """A possible break: `flat` when its group is on one line."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class IfBroken:
    """`broken` when the group around it is broken, else `flat`."""

    broken: str
    flat: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment: `text` goes to the end of the line (`alone`: on a line of its own); whatever holds it is broken."""

    text: str
    alone: bool


@dataclass(frozen=True, slots=True)
class Indent:
    """The part is indented by one step where it is broken."""

    part: Doc


@dataclass(frozen=True, slots=True)
class Group:
    """Broken as a whole or not at all; always broken when `force`."""

    part: Doc
    force: bool = False


Doc: TypeAlias = "str | Line | IfBroken | Remark | Indent | Group | list[Doc]"

STEP = 4
SOFT = Line("")
LINE = Line()


def must_break(doc: Doc) -> bool:
    """Whether something in `doc` can't stand on one line with the rest."""
    match doc:
        case Remark():
            return True
        case Group(part=part, force=force):
            return force or must_break(part)
        case Indent(part=part):
            return must_break(part)
        case list():
            return any(must_break(part) for part in doc)
    return False


def render(doc: Doc, width: int, indent: int) -> str:
    """The text of `doc`, which begins in column `indent`.

    A break that is in no group is never taken: there are no brackets around it.
    """
    out: list[str] = []
    column = indent
    pending = ""
    stack: list[tuple[int, bool, Doc]] = [(indent, False, doc)]
    while stack:
        at, broken, part = stack.pop()
        match part:
            case str():
                out.append(part)
                column = _column(column, part)
            case list():
                stack.extend((at, broken, p) for p in reversed(part))
            case Indent(part=inner):
                stack.append((at + STEP, broken, inner))
            case IfBroken():
                stack.append((at, broken, part.broken if broken else part.flat))
            case Remark(text=text, alone=alone):
                if alone:
                    out.append(text)
                else:
                    pending = f"{pending}  {text}"
            case Line(flat=flat):
                if broken:
                    out.append(f"{pending}\n{' ' * at}")
                    pending = ""
                    column = at
                else:
                    out.append(flat)
                    column += len(flat)
            case Group(part=inner):
                flat_fits = not must_break(part) and _fits(width - column, [inner, *_tail(stack)], width)
                stack.append((at, not flat_fits, inner))
    return "".join(out) + pending


def _fits(room: int, doc: Doc, width: int) -> bool:
    stack: list[Doc] = [doc]
    while stack and room >= 0:
        match stack.pop():
            case str() as text:
                # A literal of several lines goes on after its last one.
                first, newline, _ = text.partition("\n")
                room -= len(first)
                if newline and room >= 0:
                    room = width - _column(0, text)
            case list() as parts:
                stack.extend(reversed(parts))
            case Indent(part=part) | Group(part=part):
                stack.append(part)
            case IfBroken(flat=flat) | Line(flat=flat):
                room -= len(flat)
    return room >= 0


def _tail(stack: list[tuple[int, bool, Doc]]) -> list[Doc]:
    """The text that follows up to the next possible break: a group that leaves no room for it doesn't fit."""
    found: list[Doc] = []
    for _, broken, part in reversed(stack):
        if not isinstance(part, str):
            if isinstance(part, IfBroken):
                found.append(part.broken if broken else part.flat)
                continue
            break
        found.append(part)
    return found


def _column(column: int, text: str) -> int:
    newline = text.rfind("\n")
    return column + len(text) if newline < 0 else len(text) - newline - 1
