"""Prints what a manifest says, and a source with its tool calls marked by what they can do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from albert_tools.engine.model.visible_text import safe
from albert_tools.engine.review.manifest_view import Line
from albert_tools.engine.review.planned_effects import HIGH, RISKS, risk_of
from albert_tools.grammar.wrap import cells, unstyled
from albert_tools.surfaces.text.console import Console

STYLES: dict[str, tuple[str, ...]] = {
    "danger": ("red", "bold"),
    "warning": ("yellow",),
    "plain": (),
    "quiet": ("dim",),
    "heading": ("bold",),
}
#: The most lines of a manifest that are printed. The riskiest come first.
MAX_LINES = 200
#: Cells of the longest name that other lines are aligned with.
_MAX_NAME = 20
_CALL = re.compile(r"\btools\.\w+")


def print_lines(lines: Sequence[Line], console: Console, whole: bool = False) -> None:
    """Print the lines of a manifest, indented by two cells. With `whole`, long contents are not folded."""
    width = min(max((cells(line.name) + 2 * line.indent for line in lines), default=0), _MAX_NAME)
    for line in lines[:MAX_LINES]:
        indent = 2 + 2 * line.indent
        name = f"{line.name.ljust(width - 2 * line.indent)}  " if line.name else ""
        text = f"{name}{(whole and line.whole) or line.text}"
        text = console.paint(text, *STYLES[line.tone]) if STYLES[line.tone] else text
        console.say(f"{' ' * indent}{text}", indent + len(name))
    if len(lines) > MAX_LINES:
        console.say(
            console.paint(f"  … and {len(lines) - MAX_LINES:,} more; --json has them all", *STYLES["danger"]), 4
        )


def print_source(source: str, console: Console, effects: Mapping[int, Sequence[str]] | None = None) -> None:
    """Print a source. On a terminal it has line numbers, and the calls of the lines in `effects` have the colour of their risk."""
    lines = _highlighted(safe(source.rstrip("\n")), console).split("\n")
    if console.out_width is None:
        console.say("\n".join(lines))
        return
    pad = len(str(len(lines)))
    for i, line in enumerate(lines, 1):
        bare = unstyled(line)
        indent = len(bare) - len(bare.lstrip(" "))
        number = console.paint(str(i).rjust(pad), "dim")
        if effects and i in effects:
            line = _marked(line, effects[i], console)
        console.say(f"{number}  {line}" if bare.strip() else number, pad + 2 + indent + 4)


def effects_text(effects: Iterable[str], console: Console) -> str:
    """The effects as text, the risky ones in colour."""
    return ", ".join(console.paint(e, *_style([e])) if _style([e]) else e for e in effects)


def _style(effects: Iterable[str]) -> tuple[str, ...]:
    risk = risk_of(effects)
    return STYLES["danger"] if risk >= HIGH else STYLES["warning"] if risk >= RISKS["write"] else ()


def _marked(line: str, effects: Sequence[str], console: Console) -> str:
    style = _style(effects) or ("cyan",)
    if not console.out_colour:
        return line
    return _CALL.sub(lambda match: console.paint(match[0], *style), line)


def _highlighted(text: str, console: Console) -> str:
    if not console.out_colour:
        return text
    from pygments import highlight
    from pygments.formatters.terminal import TerminalFormatter
    from pygments.lexers.python import PythonLexer

    return highlight(text, PythonLexer(stripnl=False), TerminalFormatter()).rstrip("\n")
