"""A pretty printer, based on Wadler's "A prettier printer".

A document is a text, a possible line break, an indented part, or a group. A group is printed on one line if there is room for it.
Otherwise the printer breaks the line at each possible break of the group.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class Line(Struct, frozen=True):
    """A possible line break. If its group is on one line, `flat` is printed instead."""

    flat: str = " "


class IfBroken(Struct, frozen=True):
    """A text that depends on its group: `broken` if the group has line breaks, otherwise `flat`."""

    broken: str
    flat: str = ""


class Remark(Struct, frozen=True):
    """A comment at the end of a line, or on its own line (`alone`). It breaks every enclosing group."""

    text: str
    alone: bool


class Indent(Struct, frozen=True):
    """A part that is indented by one step if it is broken."""

    part: Doc


class Group(Struct, frozen=True):
    """A part with a line break at each possible break or at no break. With `force`, it always has line breaks."""

    part: Doc
    force: bool = False


Doc: TypeAlias = "str | Line | IfBroken | Remark | Indent | Group | list[Doc]"

STEP = 4
SOFT = Line("")
LINE = Line()


def must_break(doc: Doc) -> bool:
    """Whether `doc` can't be printed on one line."""
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

    A break outside all groups is never used, because it is not inside brackets.
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
                # After a literal with several lines, the column is that of its last line.
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
    """The text up to the next possible break. A group fits on the line only if there is room for this text after it."""
    tail: list[Doc] = []
    for _, broken, part in reversed(stack):
        if not isinstance(part, str):
            if isinstance(part, IfBroken):
                tail.append(part.broken if broken else part.flat)
                continue
            break
        tail.append(part)
    return tail


def _column(column: int, text: str) -> int:
    newline = text.rfind("\n")
    return column + len(text) if newline < 0 else len(text) - newline - 1
