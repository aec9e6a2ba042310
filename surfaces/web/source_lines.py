"""A source as lines of markup, with the effects of its calls in the margin."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES

from albert_tools.engine.model.definition import EFFECTS
from albert_tools.engine.model.manifest import PlannedCall
from albert_tools.surfaces.web.visible import marked

#: Characters of a source that are coloured. No saved source is longer.
MAX_COLOURED = 64 * 1024
#: Calls that are named beside one line.
MAX_BESIDE = 3


class Line(Struct, frozen=True):
    """A line: its number, its markup, and beside it the effects and names of its calls."""

    number: int
    code: Markup
    effects: tuple[str, ...] = ()
    calls: str = ""


def source_lines(source: str, calls: Sequence[PlannedCall] = ()) -> list[Line]:
    """The lines of a source; `calls` are those of its manifest."""
    lines = _coloured(source) if len(source) <= MAX_COLOURED else [marked(line) for line in source.split("\n")]
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    beside: dict[int, list[PlannedCall]] = {}
    for call in calls:
        beside.setdefault(call.line, []).append(call)
    return [_line(number, code, beside.get(number, [])) for number, code in enumerate(lines, 1)]


def _line(number: int, code: Markup, calls: list[PlannedCall]) -> Line:
    call_effects = {effect for call in calls for effect in call.effects}
    names = [*dict.fromkeys(" › ".join([*call.via, call.tool]) for call in calls)]
    more = f" and {len(names) - MAX_BESIDE} more" if len(names) > MAX_BESIDE else ""
    effects = tuple(effect for effect in reversed(EFFECTS) if effect in call_effects)
    return Line(number, code, effects, ", ".join(names[:MAX_BESIDE]) + more)


def _coloured(source: str) -> list[Markup]:
    """One markup a line. `get_tokens` would remove what a reader must see, such as a byte order mark."""
    lines: list[list[Markup]] = [[]]
    for _, kind, text in PythonLexer().get_tokens_unprocessed(source):
        style = STANDARD_TYPES.get(kind, "")
        for i, part in enumerate(text.split("\n")):
            if i:
                lines.append([])
            if part:
                code = marked(part)
                lines[-1].append(Markup('<span class="{}">{}</span>').format(style, code) if style else code)
    return [Markup("").join(parts) for parts in lines]
