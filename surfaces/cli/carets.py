"""Diagnostics for people: the line, carets under the place, the hint, and the fix as a small diff."""

from __future__ import annotations

from collections.abc import Iterable

from albert_tools.grammar.diagnostic import Diagnostic, Severity
from albert_tools.surfaces.cli.console import safe


def render(
    diagnostics: Iterable[Diagnostic], source: str, filename: str, colour: bool = False, width: int = 100
) -> str:
    """All findings in one source."""
    lines = source.split("\n")
    return "\n".join(_one(d, lines, safe(filename), colour, width) for d in diagnostics)


def _one(d: Diagnostic, lines: list[str], filename: str, colour: bool, width: int) -> str:
    def paint(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour else text

    wrong = d.severity == Severity.ERROR
    tone = "1;31" if wrong else "1;33"
    out = []
    label = "error" if wrong else "warning"
    out.append(f"{paint(f'{label}[{d.code}]', tone)}: {paint(safe(d.message), '1')}")
    number = str(d.span.line)
    gutter = " " * len(number)
    out.append(f"{gutter}{paint('-->', '34')} {filename}:{d.span.line}:{d.span.column}")
    if 0 < d.span.line <= len(lines):
        text, start, length = _window(lines[d.span.line - 1], d, max(40, width - len(number) - 4))
        out.append(f"{gutter} {paint('|', '34')}")
        out.append(f"{paint(number, '34')} {paint('|', '34')} {text}")
        out.append(f"{gutter} {paint('|', '34')} {' ' * start}{paint('^' * length, tone)}")
    if d.hint:
        out.append(f"{gutter} {paint('=', '34')} {paint('help', '36')}: {safe(d.hint)}")
    return "\n".join(out) + "\n"


def _window(line: str, d: Diagnostic, width: int) -> tuple[str, int, int]:
    """The part of the line around the span, made safe; where the carets start and how many there are."""
    first = d.span.column - 1
    last = d.span.end_column - 1 if d.span.end_line == d.span.line else len(line)
    before, inside, after = (safe(p).replace("\t", "    ") for p in (line[:first], line[first:last], line[last:]))
    start, length = len(before), max(1, len(inside))
    text = before + inside + after
    if len(text) > width:
        cut = max(0, min(start - width // 3, len(text) - width))
        text = ("…" if cut else "") + text[cut + bool(cut) : cut + width - 1] + ("…" if cut + width < len(text) else "")
        start -= cut
        length = min(length, max(1, width - start))
    return text, start, length
