"""Generates the page about primitives from their declarations: `docs/primitives.md` and `albert tools --markdown`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from albert_tools.engine.model.definition import MODES, spell
from albert_tools.engine.model.describe import (
    article,
    bounds_of,
    confined_of,
    data_of,
    resources_of,
    shape_of,
    timeout_of,
)
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.policy.layers import Layer
from albert_tools.engine.policy.rules import Policy

_INTRODUCTION = """# Primitives

Primitives are tools written in Python: functions under `@primitive`. Programs call them as `tools.NAME(…)`, people as
`albert run NAME`. The rules judge each call by its category and effects, the mode, and what it touches
([governance.md](governance.md)). A failure has one of the codes in [errors.md](errors.md). This page is generated from the
declarations, which are also what a model sees.
"""

_TABLE = """| tool | effects | category | risk | modes | approval | confined | timeout | calls per hour |
|---|---|---|---|---|---|---|---|---|"""

_LEGEND = """\
*Approval*: `always` is declared by the tool; `asks` is the shipped rule in NORMAL, if the owner's rules do not mention the tool;
`off` means denied until the owner allows it by name. *Confined*: a `function` runs in a process that can only compute; a `command`
runs in the sandbox for commands. *Timeout* and *calls per hour* are declared by the tool; rules may lower them.
"""


def primitives_page(primitives: Sequence[Primitive], introduction: str = _INTRODUCTION) -> str:
    """The whole page: a table of all primitives, then each primitive, by family. `introduction` includes the title."""
    families: dict[str, list[Primitive]] = {}
    for primitive in primitives:
        families.setdefault(primitive.definition.family, []).append(primitive)
    together = [p for members in families.values() for p in members]
    lines = [introduction, _TABLE, *(_row(p) for p in together), "", _LEGEND]
    for family, members in families.items():
        lines += [f"## Family: {family}", ""]
        for primitive in members:
            lines += _of(primitive)
    return "\n".join(lines)


def _row(primitive: Primitive) -> str:
    d = primitive.definition
    cells = [
        f"[`{d.name}`](#{d.name.lower()})",
        " ".join(d.effects) or "none",
        d.category,
        d.risk,
        "all" if set(d.allowed_modes) == set(MODES) else " ".join(d.allowed_modes),
        _approval(primitive),
        confined_of(primitive) or "–",
        timeout_of(d.timeout),
        f"{d.rate_limit:,}" if d.rate_limit is not None else "–",
    ]
    return f"| {' | '.join(cells)} |"


def _approval(primitive: Primitive) -> str:
    """The outcome of a call in NORMAL under the shipped rules alone."""
    d = primitive.definition
    if d.approval:
        return "off, then always" if primitive.gated else "always"
    shipped = Policy((Layer(),), "/workspace", "/home/nobody").permits(d, primitive.gated, "NORMAL")
    return {"allow": "–", "ask": "asks", "deny": "off" if primitive.gated else "denied"}[shipped.verdict]


def _of(primitive: Primitive) -> Iterator[str]:
    d = primitive.definition
    yield from (f"### {d.name}", "", "```text", d.signature(), "```", "", _escaped(d.description), "")
    if d.parameters:
        yield "Parameters:"
        yield ""
        for p in d.parameters:
            bounds = bounds_of(p.schema)
            text = f"{', ' if bounds else ''}{bounds}. {_escaped(p.description)}".rstrip()
            yield f"- `{shape_of(p)}`{text}"
        yield ""
    facts = [f"Result: `{spell(d.result)}`."]
    facts += [f"Give {'exactly' if i.needed else 'at most'} one of {_names(i.names)}." for i in d.invariants]
    judged = [f"`{name}` as {article(what)} {what}" for name, what in resources_of(primitive).items()]
    facts += [f"Rules judge {', '.join(judged)}."] if judged else []
    data = data_of(d)
    facts += [data] if data else []
    facts += ["Idempotent."] if d.idempotent else []
    yield " ".join(facts)
    yield ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _escaped(text: str) -> str:
    """A docstring as Markdown. Tags and emphasis outside code are escaped."""
    parts = text.split("`")
    parts[::2] = [p.replace("<", "&lt;").replace("*", "\\*") for p in parts[::2]]
    return "`".join(parts)
