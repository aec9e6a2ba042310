"""The calls of a manifest as a reviewer reads them: grouped, riskiest first, each with its resources, bound and flows.

Calls that only read are one group for each primitive. Other calls are one group if the same data reaches the same parameters. So
the text stays short, and a request that sends a file is never mixed with one that sends nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from albert_tools.engine.model.manifest import (
    ANY_NAME,
    Bound,
    Hole,
    Manifest,
    Origin,
    PlannedCall,
    Symbol,
    Term,
    Value,
    call_of,
    data_of,
    values_in,
)
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.call_warnings import call_warnings
from albert_tools.engine.review.value_words import (
    EXECUTED,
    MAX_CONTENT,
    MAX_ORIGINS,
    MAX_TEXT,
    Words,
    is_anything,
    is_loud,
    via_words,
)

#: How much harm the effects of a call can do at most, from 0 to `HIGH`.
HIGH = 4
RISKS = {"network": HIGH, "execute": HIGH, "secret": HIGH, "delete": HIGH, "write": 2, "read": 1}
#: The risk of a request or a command that is fixed and carries nothing that the tool has read.
_FIXED = 3
#: The verbs for the uses of an argument that name a resource.
VERBS = {
    "read": "reads",
    "write": "writes",
    "delete": "deletes",
    "url": "connects to",
    "shell": "runs",
    "program": "runs",
    "folder": "in",
}
#: The uses of arguments whose content a request sends, and of those whose content a call takes out of the program.
SENT = ("payload", "url", "destination", "arguments")
_TAKEN_OUT = (*SENT, "environment", "shell", "program", "folder")


class Effect(Struct, frozen=True):
    """A group of calls in words.

    Attributes:
        tool: The primitive.
        effects: Its effects.
        risk: From 0 (no effect) to `HIGH`.
        resources: What it reads, writes or reaches: pairs of a verb and a value.
        settings: Other arguments that matter, such as a recipient or the environment of a command: pairs of a name and a value.
        anything: Whether one of them can be anything.
        warnings: What somebody else can choose: the host, the program, a command, the code that a command loads; and files with a
            meaning that it touches.
        bound: How often it is called at most.
        bounded: Whether this is known.
        via: The saved tools that make the calls, as phrases; empty for direct calls.
        lines: The lines of the source.
        flows: What reaches each destination and payload.
        control: What decides when and how often something is changed, beyond the data: ``each item of {rows}`` if there is one call
            for each item.
        decided: The origins of `control`, without those of which only the number of items decides.
    """

    tool: str
    effects: tuple[str, ...]
    risk: int
    resources: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    anything: bool
    warnings: tuple[str, ...]
    bound: str
    bounded: bool
    via: tuple[str, ...]
    lines: tuple[int, ...]
    flows: tuple[Flow, ...]
    control: tuple[str, ...]
    decided: frozenset[Origin]

    @property
    def is_loud(self) -> bool:
        """Whether a resource can be anything, or is a file with a meaning."""
        return self.anything or any(is_loud(value) for _, value in self.resources)


class Flow(Struct, frozen=True):
    """What reaches a parameter of a call.

    Attributes:
        parameter: Its label.
        origins: The names of the origins of the data.
        value: The value, with its fixed texts and its holes. `folded` is the same with the middle of long texts left out.
        is_shown: Whether a resource or a setting of the effect already shows the same.
    """

    parameter: str
    origins: tuple[str, ...]
    value: str
    folded: str
    is_shown: bool


def planned_effects(
    manifest: Manifest, words: Words | None = None, among: Collection[int] | None = None
) -> list[Effect]:
    """The groups of calls, or of those with the numbers `among`: the riskiest first, then in the order of the source."""
    words = words or Words(manifest, MAX_TEXT)
    content = Words(manifest, MAX_CONTENT)
    choosing = _choosing(manifest.calls)
    groups: dict[object, dict[int, PlannedCall]] = {}
    for i, call in enumerate(manifest.calls):
        if among is not None and i not in among:
            continue
        sent = frozenset((name, frozenset(data_of(value))) for name, value in _sent(call).items())
        # Which secret goes to which host matters, and secrets are constants.
        payload = [name for name in _sent(call) if "network" in call.effects and call.uses.get(name) == "payload"]
        known = frozenset((name, words.value(call.arguments[name])) for name in payload)
        groups.setdefault((call.tool, sent, known), {})[i] = call
    effects = [_effect([*calls.values()], words, content, not choosing.isdisjoint(calls)) for calls in groups.values()]
    return sorted(effects, key=lambda effect: (-effect.risk, not effect.is_loud))


def risk_of(effects: Iterable[str]) -> int:
    """The most harm that a call with these effects can do, see `RISKS`."""
    return max((RISKS.get(effect, HIGH) for effect in effects), default=0)


def _sent(call: PlannedCall) -> dict[str, Value]:
    """The arguments whose content leaves the program, if the call changes something. All of them if nothing is declared."""
    if risk_of(call.effects) < RISKS["write"]:
        return {}
    return {n: v for n, v in call.arguments.items() if not call.uses or call.uses.get(n) in _TAKEN_OUT}


def _choosing(calls: Sequence[PlannedCall]) -> frozenset[int]:
    """The numbers of the calls whose output reaches a deletion, a request or a command, or a condition around one."""
    origins = [_origins(call) for call in calls]
    sources = {o for call, own in zip(calls, origins, strict=True) if risk_of(call.effects) == HIGH for o in own}
    pending = [*sources]
    while pending:
        number = call_of(pending.pop())
        if number is not None and number < len(calls):
            more = origins[number] - sources
            sources |= more
            pending += more
    return frozenset(i for i in range(len(calls)) if f"call:{i}" in sources)


def _origins(call: PlannedCall) -> frozenset[Origin]:
    """The origins of all that a call is given, and of what decides about it."""
    values = [v for value in call.arguments.values() for v in values_in(value)]
    return frozenset(call.control).union(*((*v.data, *v.control) for v in values))


def _effect(calls: Sequence[PlannedCall], words: Words, content: Words, chooses: bool) -> Effect:
    first, uses = calls[0], calls[0].uses
    given: dict[str, list[Value]] = {}
    for call in calls:
        for name, value in call.arguments.items():
            given.setdefault(name, []).append(value)
    shown = [name for name in given if uses.get(name, "payload") != "payload"]
    resources = [(uses[name], given[name]) for name in shown if uses[name] in VERBS]
    settings = {name: given[name] for name in shown if uses[name] not in VERBS}
    sent = {name: given[name] for name in _sent(first)}
    carries = frozenset(o for values in sent.values() for o in data_of(*values))
    warnings = tuple(dict.fromkeys(warning for call in calls for warning in call_warnings(call, words)))
    risk = risk_of(first.effects)
    is_fixed = (resources or settings) and not warnings and not any(o.startswith("call:") for o in carries)
    if risk == HIGH and is_fixed and not {"delete", "secret"} & set(first.effects):
        risk = _FIXED
    if uses and (risk >= RISKS["write"] or chooses):
        # The method of a request, the pattern of a search for what is deleted: what a call does is in such arguments, too.
        settings |= {name: values for name, values in given.items() if name not in {*uses, ANY_NAME}}
    decided = _control(calls, carries) if risk >= RISKS["write"] else frozenset()
    counted = decided & _counted(calls)
    decided -= counted
    named = [(VERBS[use], words.value(*values, use=use) + _unnamed(values, words)) for use, values in resources]
    if any(EXECUTED in text for _, text in named):
        content = words  # what others execute is never folded
    comparisons = dict.fromkeys(words.comparison(c) for call in calls for c in call.compared)
    compared = [*comparisons] if risk >= RISKS["write"] else []
    picked = dict.fromkeys(p for c in calls for p in c.picked) if risk >= RISKS["write"] else {}
    bound = _sum(c.bound for c in calls)
    return Effect(
        tool=first.tool,
        effects=first.effects,
        risk=risk,
        resources=tuple(dict.fromkeys(named)),
        settings=(
            *((name, words.value(*values)) for name, values in settings.items()),
            *([("compared with", ", ".join(compared))] if compared else []),
            *([("chosen by", ", ".join(map(visible, picked)))] if picked else []),
        ),
        anything=any(is_anything(v) for name in shown for value in given[name] for v in values_in(value)),
        warnings=warnings,
        bound=words.bound(bound),
        bounded=bound is not None,
        via=tuple(via_words(calls)),
        lines=tuple(dict.fromkeys(c.line for c in calls)),
        flows=tuple(
            Flow(
                label_of(name),
                tuple(words.origins(data_of(*values))),
                words.value(*values, use=uses.get(name, "")),
                content.value(*values, use=uses.get(name, "")),
                name in shown,
            )
            for name, values in sent.items()
        ),
        control=(*words.origins(decided), *(f"each item of {name}" for name in words.origins(counted))),
        decided=decided,
    )


def label_of(name: str) -> str:
    """The name of an argument for people."""
    return "arguments" if name == ANY_NAME else name


def _control(calls: Sequence[PlannedCall], carries: frozenset[Origin]) -> frozenset[Origin]:
    origins = {o for call in calls for o in call.control}
    return frozenset(origins | _choosing_values(calls)) - carries


def _counted(calls: Sequence[PlannedCall]) -> frozenset[Origin]:
    """The origins of which only the number of items decides."""
    more = {o for call in calls for o in call.control if o not in call.counted}
    return frozenset(o for call in calls for o in call.counted) - more - _choosing_values(calls)


def _choosing_values(calls: Sequence[PlannedCall]) -> set[Origin]:
    """The origins that decide which of several values a call is given."""
    return {o for call in calls for value in call.arguments.values() for v in values_in(value) for o in v.control}


def _unnamed(values: Sequence[Value], words: Words) -> str:
    """The origins of a number or a word in a value, which does not name them."""
    parts = [
        p for v in values for each in values_in(v) for one in each.alternatives if isinstance(one, tuple) for p in one
    ]
    if not any(isinstance(part, Hole) and part.kind in ("number", "word") for part in parts):
        return ""
    shown = words.value(*values)
    hidden = [name for name in words.origins(data_of(*values)) if name not in shown]
    return f" (from {listed(hidden, MAX_ORIGINS)})" if hidden else ""


def _sum(bounds: Iterable[Bound]) -> Bound:
    """The sum of bounds. It has one term for each product of symbols."""
    total: dict[tuple[Symbol, ...], int] = {}
    for bound in bounds:
        if bound is None:
            return None
        for term in bound:
            total[term.of] = total.get(term.of, 0) + term.times
    return tuple(Term(times, of) for of, times in total.items())
