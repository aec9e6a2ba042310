"""A manifest as JSON (`view`) and as lines for people (`lines`).

Nothing here comes from what an agent says about its tool: names of parameters and constants occur in values only, escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from albert_tools.engine.model.definition import EFFECTS, Json
from albert_tools.engine.model.manifest import Manifest, Origin, PlannedCall, values_in
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.overlaps import feeds
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.planned_effects import HIGH, Effect, Flow, planned_effects, risk_of
from albert_tools.engine.review.value_words import ANYTHING, MAX_ORIGINS, MAX_TEXT, Words, is_loud

Tone = Literal["danger", "warning", "plain", "quiet", "heading"]
#: The tone for each risk of `Effect.risk`.
_TONES: tuple[Tone, ...] = ("quiet", "plain", "warning", "warning", "danger")


class Line(Struct, frozen=True):
    """One line for people. `name` is a tool, a parameter or another label; `text` may contain values in quotes and braces.

    `indent` is 0 for a tool and 1 for what belongs to the tool above. `line` is a line of the source, or 0. `whole` is the text
    with nothing left out; empty if `text` is that.
    """

    text: str
    name: str = ""
    tone: Tone = "plain"
    indent: int = 0
    line: int = 0
    whole: str = ""


def view(manifest: Manifest) -> dict[str, Json]:
    """The JSON form: ``effects``, ``resources``, ``bounds`` and ``flows``, each riskiest first.

    Values are in words, as `lines` shows them, but nothing is left out. ``flows`` has an entry for each destination and payload,
    then for the result, for printed texts and for the messages of errors. ``feeds`` lists the writes that reads of the tool itself
    may see.
    """
    words = Words(manifest, MAX_TEXT, MAX_TEXT)
    effects = planned_effects(manifest, words)
    flows: list[Json] = [
        {
            "to": f"{e.tool}.{flow.parameter}",
            "data": list(flow.origins),
            "value": flow.value,
            "control": list(e.control),
            **_where(e),
        }
        for e in effects
        for flow in e.flows
    ]
    for name, data, control in _ends(manifest):
        flows.append({"to": name, "data": words.origins(data), "control": words.origins(control)})
    return {
        "effects": list(manifest.effects),
        "resources": [
            {"tool": e.tool, "use": verb, "value": value, "anything": ANYTHING in value, **_where(e)}
            for e in effects
            for verb, value in (*e.resources, *e.settings)
        ],
        "bounds": [{"tool": e.tool, "calls": e.bound, "known": e.bounded, **_where(e)} for e in effects],
        "flows": flows,
        "feeds": [{"write": write, "reads": reads} for write, reads in _feeds(manifest, words).items()],
    }


def lines(manifest: Manifest) -> list[Line]:
    """The lines for people, riskiest first. A tool without calls has one line."""
    words = Words(manifest)
    effects = planned_effects(manifest)
    lines = [line for effect in effects for line in _effect_lines(effect)]
    if manifest.given_up:
        lines.insert(
            0, Line(f"the analysis takes too long at line {manifest.given_up}", "ANYTHING IS POSSIBLE", "danger")
        )
    if not lines:
        lines.append(Line("calls no tools: it can only compute its result", tone="quiet"))
    for write, reads in _feeds(manifest, words).items():
        lines.append(Line(f"{write} may write what is read by {listed(reads, MAX_ORIGINS)}", tone="warning"))
    if executed := _executed(manifest, words):
        lines.append(Line(executed, tone="danger"))
    for name, data, control in _ends(manifest):
        # Control origins of the result only matter with its data: both can be read by the caller.
        origins = words.origins({*data, *control})
        if origins:
            lines.append(Line(f"from {listed(origins, MAX_ORIGINS)}", name, tone="quiet"))
    decided = [e for e in effects if e.control]
    if decided:
        lines.append(Line("when and how often is decided by", tone="heading"))
        for e in decided:
            # A condition can send what was read, a bit at a time.
            reveals = risk_of(e.effects) == HIGH and any(o.startswith("call:") for o in e.decided)
            tone: Tone = "warning" if reveals else "plain"
            lines.append(Line(listed(e.control, MAX_ORIGINS), visible(e.tool), tone, 1, e.lines[0]))
    return lines


def split(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """The lines that a reviewer reads, and the rest that may be folded: plain reads, results, and conditions without a warning.

    A line and what belongs to it are together. A read with further arguments decides what is deleted, sent or executed, so it is
    not folded. If no line has a warning, nothing is.
    """
    blocks: list[list[Line]] = []
    for line in lines:
        if not line.indent or not blocks:
            blocks.append([])
        blocks[-1].append(line)
    quiet = [
        all(line.tone not in ("danger", "warning") for line in block)
        and (len(block) == 1 or block[0].tone == "heading")
        for block in blocks
    ]
    if all(line.tone not in ("danger", "warning") for line in lines):
        return list(lines), []
    read = [line for block, is_quiet in zip(blocks, quiet, strict=True) if not is_quiet for line in block]
    return read, [line for block, is_quiet in zip(blocks, quiet, strict=True) if is_quiet for line in block]


def effects_of_lines(manifest: Manifest) -> dict[int, tuple[str, ...]]:
    """The effects of the calls in each line of the source that makes calls."""
    by_line: dict[int, set[str]] = {}
    for call in manifest.calls:
        by_line.setdefault(call.line, set()).update(call.effects)
    return {line: tuple(e for e in EFFECTS if e in effects) for line, effects in sorted(by_line.items())}


def _effect_lines(effect: Effect) -> list[Line]:
    tone: Tone = _TONES[effect.risk]
    if effect.is_loud:
        tone = "danger" if effect.risk > 1 else "warning"
    resources = [f"{verb} {value}" for verb, value in effect.resources]
    text = "; ".join([*resources, *effect.warnings, effect.bound, *effect.via])
    lines = [Line(text, visible(effect.tool), tone, line=effect.lines[0])]
    for name, value in effect.settings:
        lines.append(Line(value, visible(name), tone if is_loud(value) else "plain", 1))
    for flow in effect.flows:
        if not flow.is_shown:
            tone = "danger" if _takes_out(effect, flow) else "plain"
            whole = flow.value if flow.folded != flow.value else ""
            lines.append(Line(_with_origins(flow, flow.folded), visible(flow.parameter), tone, 1, whole=whole))
    return lines


def _with_origins(flow: Flow, value: str) -> str:
    """A value, and the origins of its data that it doesn't show: those of a number, for example."""
    hidden = [name for name in flow.origins if name not in value]
    return f"{value} (from {listed(hidden, MAX_ORIGINS)})" if hidden else value


def _feeds(manifest: Manifest, words: Words) -> dict[str, list[str]]:
    """For each call that writes, what may read that. What a deletion or the result of a write shows is not worth a line."""
    reads_by_write: dict[str, dict[str, None]] = {}
    for writer, reader in feeds(manifest):
        if _does(manifest.calls[writer], "write") and _does(manifest.calls[reader], "read"):
            reads_by_write.setdefault(words.call(writer), {})[words.call(reader)] = None
    return {write: list(reads) for write, reads in reads_by_write.items()}


def _does(call: PlannedCall, what: str) -> bool:
    return what in call.effects or what in call.uses.values()


def _executed(manifest: Manifest, words: Words) -> str:
    """Which commands may execute the files that the tool writes. What is in a file can't be seen in the text of a command."""
    writers = dict.fromkeys(words.call(i) for i, call in enumerate(manifest.calls) if "write" in call.uses.values())
    commands = dict.fromkeys(visible(call.tool) for call in manifest.calls if "execute" in call.effects)
    if not writers or not commands:
        return ""
    return f"{listed([*commands], MAX_ORIGINS)} may execute what is written by {listed([*writers], MAX_ORIGINS)}"


def _takes_out(effect: Effect, flow: Flow) -> bool:
    """Whether something that the tool has read leaves this machine, or is executed."""
    return effect.risk == HIGH and any(not origin.startswith("{") for origin in flow.origins)


def _ends(manifest: Manifest) -> Iterable[tuple[str, Sequence[Origin], Sequence[Origin]]]:
    """What leaves the tool besides its calls: the name, the data origins and the control origins."""
    values = list(values_in(manifest.result))
    yield "result", [o for v in values for o in v.data], [o for v in values for o in v.control]
    yield "printed", manifest.printed, ()
    yield "errors", manifest.raised, ()


def _where(effect: Effect) -> dict[str, Json]:
    return {"risk": effect.risk, "lines": list(effect.lines), "via": list(effect.via)}
