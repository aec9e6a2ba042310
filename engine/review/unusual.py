"""What is unusual about a tool, each in one line: what a reviewer looks at first.

A host that the owner's rules don't name, what somebody else can choose, a file with a meaning, whole files that leave this machine,
changes and requests without a bound. The lines of the manifest show the same in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from albert_tools.engine.model.fixed_hosts import fixed_hosts
from albert_tools.engine.model.manifest import Hole, Manifest, PlannedCall, Value, values_in
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.planned_effects import HIGH, SENT, planned_effects, risk_of
from albert_tools.engine.review.value_words import Words, is_loud


def unusual(manifest: Manifest, listed_hosts: Collection[str]) -> tuple[str, ...]:
    """What is unusual, each once. `listed_hosts` are those of `hosts_of` that the owner's rules name."""
    return tuple(dict.fromkeys(_all(manifest, listed_hosts)))


def hosts_of(call: PlannedCall) -> list[str]:
    """The fixed hosts of a call."""
    return [host for url in call.used("url") for host in fixed_hosts(url) or ()]


def _all(manifest: Manifest, listed_hosts: Collection[str]) -> Iterator[str]:
    words = Words(manifest)
    for call in manifest.calls:
        yield from (f"no rule of yours names the host {h}" for h in hosts_of(call) if h not in listed_hosts)
    for effect in planned_effects(manifest, words):
        yield from effect.warnings
        yield from (f"{verb} {value}" for verb, value in effect.resources if is_loud(value))
        yield from (f"{visible(effect.tool)} with {name} {value}" for name, value in effect.settings if is_loud(value))
        if effect.risk == HIGH and not effect.bounded:
            yield f"{visible(effect.tool)} {effect.bound}"
    for call in manifest.calls:
        for number in _whole_outputs(call) if "network" in call.effects else ():
            if risk_of(effect for effect in manifest.calls[number].effects if effect != "network"):
                yield f"sends all of {words.call(number)}"


def _whole_outputs(call: PlannedCall) -> Iterator[int]:
    """The numbers of the calls whose texts a request sends whole."""
    sent = [v for name, v in call.arguments.items() if call.uses.get(name, "payload") in SENT]
    for value in sent:
        yield from _outputs_in(value)


def _outputs_in(value: Value) -> Iterator[int]:
    alternatives = [one for each in values_in(value) for one in each.alternatives if isinstance(one, tuple)]
    for hole in (part for one in alternatives for part in one if isinstance(part, Hole)):
        if hole.kind == "output":
            yield hole.call
        if hole.value is not None:
            yield from _outputs_in(hole.value)
