"""Renders diagnostics for a person: the line, a caret below the place, and what to write instead.

```
error[unknown-tool]: no tool named 'read_flie'; did you mean 'read_file'?
 --> words.tool:3:12
  |
3 |     return len(tools.read_flie(path=path).split())
  |                ^^^^^^^^^^^^^^^
  = help: write tools.read_file
  |
3 -     return len(tools.read_flie(path=path).split())
3 +     return len(tools.read_file(path=path).split())
```

Sources, and names in messages, are untrusted. A terminal obeys control characters. A direction override can make a source look like
another program. Therefore every invisible character is replaced by its escape before a line is measured or printed, and carets are
placed by cells, not by characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from msgspec import Struct

from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Severity, in_order
from albert_tools.grammar.wrap import cells, first_cells, folded, last_cells

#: The narrowest listing that is still useful.
MIN_WIDTH = 40
#: Blanks that replace a tab.
TAB = 4
#: Lines of a fix that are shown of the old and of the new text.
MAX_FIX_LINES = 8

#: Unicode categories of invisible and controlling characters: control, format, surrogate, private, unassigned, and line and
#: paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def render(
    diagnostics: Iterable[Diagnostic],
    source: str,
    filename: str,
    colour: bool = False,
    width: int = 100,
    *,
    fold: bool = False,
    limit: int | None = None,
) -> str:
    """The diagnostics as a listing that ends with their number. Empty if there are no diagnostics.

    Args:
        diagnostics: In any order.
        source: The checked text.
        filename: The name to show.
        colour: Whether to use ANSI colours.
        width: Cells of a line. A longer source line is cut, so that the place of the finding stays visible.
        fold: Whether to wrap messages and hints at word boundaries.
        limit: The largest number of diagnostics to show. The others are only counted.
    """
    findings = in_order(diagnostics)
    if not findings:
        return ""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    writer = _Writer(lines, visible(filename), _Paint(colour), max(width, MIN_WIDTH), fold)
    # Errors come before warnings.
    chosen = in_order(sorted(findings, key=lambda d: d.severity != Severity.ERROR)[:limit])
    parts = [writer.finding(d) for d in chosen]
    if len(parts) < len(findings):
        uncounted = findings[-1].message if findings[-1].code == "more-findings" else ""
        more = len(findings) - len(parts) - bool(uncounted)
        parts.append(f"… and {more:,} more{uncounted and f'; {uncounted}'}\n")
    return "\n".join([*parts, _count(findings)]) + "\n"


def visible(text: str) -> str:
    """The text with escapes for invisible and controlling characters."""
    return "".join(_spell(c) for c in text)


def _spell(c: str) -> str:
    if c == " " or (c.isascii() and c.isprintable()):
        return c
    if c == "\t":
        return " " * TAB
    hidden = unicodedata.category(c) in _HIDDEN or c.isspace()
    if not hidden:
        return c
    code = ord(c)
    named = {"\n": "\\n", "\r": "\\r"}.get(c)
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


class _Paint(Struct, frozen=True):
    on: bool

    def __call__(self, style: str, text: str) -> str:
        return f"\033[{style}m{text}\033[0m" if self.on else text


_BOLD, _RED, _YELLOW, _BLUE, _CYAN, _GREEN = "1", "1;31", "1;33", "1;34", "1;36", "32"
_REMOVED = "31"


class _Writer(Struct, frozen=True):
    lines: Sequence[str]
    filename: str
    paint: _Paint
    width: int
    fold: bool = False

    def finding(self, d: Diagnostic) -> str:
        paint = self.paint
        style = _RED if d.severity == Severity.ERROR else _YELLOW
        title = paint(style, f"{d.severity}[{d.code}]") + self.fitting(
            paint(_BOLD, f": {visible(d.message)}"), len(f"{d.severity}[{d.code}]"), 2
        )
        last = max(
            [d.span.line, *(e.span.end_line + e.text.count("\n") for e in d.fix.edits)] if d.fix else [d.span.line]
        )
        pad = len(str(last))
        out = [title, f"{' ' * pad}{paint(_BLUE, '-->')} {self.filename}:{d.span.line}:{d.span.column}"]
        bar = f"{' ' * pad} {paint(_BLUE, '|')}"
        if d.span.line <= len(self.lines):
            shown, carets = self.place(d, self.width - pad - 3)
            out += [bar, f"{paint(_BLUE, f'{d.span.line:>{pad}} |')} {shown}", f"{bar} {paint(style, carets)}"]
            if d.span.end_line > d.span.line + 1 or (d.span.end_line > d.span.line and d.span.end_column > 1):
                out.append(f"{' ' * pad} {paint(_BLUE, '=')} note: up to line {d.span.end_line}")
        if d.hint:
            out.append(self.help(d.hint, pad))
        if d.fix is not None:
            if not d.hint:
                out.append(self.help(d.fix.title, pad))
            out += [bar, *self.change(d.fix, pad)]
        return "\n".join(out) + "\n"

    def help(self, text: str, pad: int) -> str:
        """The hint below a diagnostic."""
        before = f"{' ' * pad} {self.paint(_BLUE, '=')} {self.paint(_CYAN, 'help')}: "
        return before + self.fitting(visible(text), pad + 9, pad + 9)

    def fitting(self, text: str, taken: int, hang: int) -> str:
        """`text`, wrapped. It starts after `taken` cells of its line."""
        if not self.fold:
            return text
        return folded("x" * taken + text, self.width, hang)[taken:]

    def place(self, d: Diagnostic, room: int) -> tuple[str, str]:
        """The source line and the carets below it. The line is cut to `room` cells around the start of the finding."""
        line = self.lines[d.span.line - 1]
        start = min(d.span.column - 1, len(line))
        end = d.span.end_column - 1 if d.span.end_line == d.span.line else len(line)
        end = max(start, min(end, len(line)))
        spelled = [_spell(c) for c in line]
        before, marked = "".join(spelled[:start]), "".join(spelled[start:end])
        after = "".join(spelled[end:])
        cut = ""
        if cells(before + marked + after) > room:
            # A third of the room shows the text before the finding.
            if cells(before) > room // 3:
                before, cut = last_cells(before, room // 3 - 1), "…"
            left = room - cells(cut + before)
            if cells(marked) > left:
                marked, after = first_cells(marked, left - 1), "…"
            elif cells(marked + after) > left:
                after = first_cells(after, left - cells(marked) - 1) + "…"
        shown = cut + before + marked + after
        return shown.rstrip(), " " * cells(cut + before) + "^" * max(1, cells(marked))

    def change(self, fix: Fix, pad: int) -> list[str]:
        """The lines that a fix changes, in their old and new form."""
        out: list[str] = []
        for edits in _together(fix.edits):
            first, last = edits[0].span.line, max(e.span.end_line for e in edits)
            old = list(self.lines[first - 1 : last])
            moved = tuple(
                Edit(e.span._replace(line=e.span.line - first + 1, end_line=e.span.end_line - first + 1), e.text)
                for e in edits
            )
            new = Fix("", moved).apply("\n".join(old)).split("\n")
            while old and new and old[-1] == new[-1]:
                old.pop()
                new.pop()
            while old and new and old[0] == new[0]:
                old, new, first = old[1:], new[1:], first + 1
            out += self.side("-", _REMOVED, old, first, pad) + self.side("+", _GREEN, new, first, pad)
        return out

    def side(self, sign: str, style: str, lines: list[str], first: int, pad: int) -> list[str]:
        room = self.width - pad - 3
        shown = [visible(line) for line in lines[:MAX_FIX_LINES]]
        shown = [line if cells(line) <= room else first_cells(line, room - 1) + "…" for line in shown]
        out = [self.paint(style, f"{first + i:>{pad}} {sign} {line}".rstrip()) for i, line in enumerate(shown)]
        if len(lines) > MAX_FIX_LINES:
            out.append(self.paint(style, f"{' ' * pad} {sign} … {len(lines) - MAX_FIX_LINES} more lines"))
        return out


def _together(edits: tuple[Edit, ...]) -> list[list[Edit]]:
    """The edits in order. Edits on the same line are grouped."""
    groups: list[list[Edit]] = []
    for edit in sorted(edits):
        if groups and edit.span.line <= max(e.span.end_line for e in groups[-1]):
            groups[-1].append(edit)
        else:
            groups.append([edit])
    return groups


def _count(diagnostics: Sequence[Diagnostic]) -> str:
    errors = sum(d.severity == Severity.ERROR for d in diagnostics)
    parts = [(errors, "error"), (len(diagnostics) - errors, "warning")]
    return ", ".join(f"{n:,} {what}{'s' if n != 1 else ''}" for n, what in parts if n)
