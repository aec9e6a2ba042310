"""What is new in a version since an earlier one: the difference of the manifests in words, and of the sources as lines.

The manifests are compared fact by fact: what each primitive reads, writes or reaches, how often, what flows into it. A fact that
only the new version has comes first, because it is what the reviewer has not approved yet.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.fixed_hosts import host_of
from albert_tools.engine.model.manifest import Hole, Manifest, PlannedCall, Value, data_of, values_in
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.planned_effects import HIGH, RISKS, VERBS, label_of, planned_effects, risk_of
from albert_tools.engine.review.value_words import MAX_ORIGINS, MAX_TEXT, Words

#: The most changed lines that are compared one by one. More are shown as one block, because comparing takes quadratic time.
MAX_COMPARED = 1_000
#: Unchanged lines around a change.
_CONTEXT = 3

Direction = Literal["more", "less", "other"]


class Change(Struct, frozen=True):
    """One difference of the manifests. `direction` is ``more`` if the new version can do something that the old one can't."""

    text: str
    direction: Direction
    risk: int


class Changes(Struct, frozen=True):
    """The differences from version `since`: of the manifests, riskiest first, and of the sources, as a unified diff.

    `unknown` are the arguments of changing calls about which the new manifest does not know everything, so that equal manifests do
    not mean equal arguments: ``content of write_file``.
    """

    since: str
    manifest: tuple[Change, ...]
    source: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    def same(self) -> str:
        """What equal manifests mean, in a sentence. Empty if the manifests differ."""
        if self.manifest:
            return ""
        if not self.source:
            return "The manifest and the source are the same; the tools that it calls have changed."
        text = "The manifest is the same: the calls, their known values, bounds and flows. The source differs in the lines below."
        return f"{text} Not known, so not compared: {listed(self.unknown, MAX_ORIGINS)}." if self.unknown else text


def changes(old: ToolVersion, new: ToolVersion) -> Changes:
    """What is new in a version."""
    differences = tuple(manifest_changes(old.manifest, new.manifest))
    return Changes(old.version, differences, source_diff(old.source, new.source), tuple(_unknown(new.manifest)))


def _unknown(manifest: Manifest) -> Iterator[str]:
    """The arguments of changing calls that are not certainly one known value, or the caller's own."""
    arguments = [
        f"{visible(label_of(name))} of {visible(call.tool)}"
        for call in manifest.calls
        if risk_of(call.effects) >= RISKS["write"]
        for name, value in call.arguments.items()
        if not _is_known(manifest, value, frozenset())
    ]
    yield from dict.fromkeys(arguments)


def _is_known(manifest: Manifest, value: Value, above: frozenset[int]) -> bool:
    """Whether a value is certainly one, which the parameters and the outside decide. `above` are the calls that it depends on."""
    values = [*values_in(value)]
    holes = [h for v in values for one in v.alternatives if isinstance(one, tuple) for h in one if isinstance(h, Hole)]
    return all(len(v.alternatives) < 2 and not v.open for v in values) and all(
        "*" not in hole.path
        and "~" not in hole.path
        and (hole.kind == "parameter" or _is_certain(manifest, hole, above))
        for hole in holes
    )


def _is_certain(manifest: Manifest, hole: Hole, above: frozenset[int]) -> bool:
    """Whether a hole is the output of a call with known arguments: of other calls, it may be the output of either."""
    if hole.kind != "output" or hole.call in above:
        return False
    given = manifest.calls[hole.call].arguments.values()
    return all(_is_known(manifest, value, above | {hole.call}) for value in given)


def manifest_changes(old: Manifest, new: Manifest) -> list[Change]:
    """The differences of two manifests in words: "now also sends to api.example.org". Empty if there are none."""
    before, after = _Facts(old), _Facts(new)
    changes = [*_other_host(before.hosts, after.hosts)]
    changes += [Change(f"has a new effect: {e}", "more", risk_of([e])) for e in new.effects if e not in old.effects]
    for kind in dict.fromkeys([*after.sets, *before.sets]):
        had, has = before.sets.get(kind, {}), after.sets.get(kind, {})
        changes += [Change(f"{kind.added} {text}", "more", risk) for text, risk in has.items() if text not in had]
        # If a call is gone, so is all that came from it. The call itself is reported.
        gone = before.origins - after.origins if kind.is_flow else ()
        less = [(text, risk) for text, risk in had.items() if text not in has and text not in gone]
        changes += [Change(f"{kind.removed} {text}", "less", risk) for text, risk in less]
    for tool in dict.fromkeys([*after.bounds, *before.bounds]):
        was, (now, risk) = before.bounds.get(tool), after.bounds.get(tool, ("", 0))
        if was is None:
            changes.append(Change(f"now also calls {tool}: {now}", "more", risk))
        elif not now:
            changes.append(Change(f"no longer calls {tool}", "less", was[1]))
        elif was[0] != now:
            changes.append(Change(f"calls {tool} {now} (before: {was[0]})", "other", risk))
    changes += _other_contents(before, after, changes)
    order = {"more": 0, "other": 1, "less": 2}
    return sorted(dict.fromkeys(changes), key=lambda change: (order[change.direction], -change.risk))


def _other_host(before: set[str], after: set[str]) -> Iterator[Change]:
    """One host in place of another. The names may differ by one letter only, so they stand side by side."""
    gone, come = before - after, after - before
    if len(gone) == len(come) == 1:
        yield Change(f"host: {gone.pop()} → {come.pop()}", "more", HIGH)


def _other_contents(before: _Facts, after: _Facts, changes: list[Change]) -> Iterator[Change]:
    """What is new in the text that surrounds the same data, or in an argument of a call that only reads."""
    for (name, tool), has in after.payloads.items():
        new = {text: risk for text, risk in has.items() if text not in before.payloads.get((name, tool), ())}
        what = f"the {name} of {tool} "
        if tool in before.bounds and not any(change.text.startswith(what) for change in changes):
            yield from (Change(f"{what}can now be {text}", "more", risk) for text, risk in new.items())


def source_diff(old: str, new: str) -> tuple[str, ...]:
    """The unified diff of two sources, without the names of files. Empty if they are equal."""
    one, other = old.split("\n"), new.split("\n")
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    if max(len(one), len(other)) - start - end > MAX_COMPARED:
        gone, come = one[start : len(one) - end], other[start : len(other) - end]
        head = f"@@ -{start + 1},{len(gone)} +{start + 1},{len(come)} @@"
        return (head, *(f"-{line}" for line in gone), *(f"+{line}" for line in come))
    # Only the lines around the changes are compared.
    first, behind = max(0, start - _CONTEXT), max(0, end - _CONTEXT)
    lines = difflib.unified_diff(
        one[first : len(one) - behind], other[first : len(other) - behind], lineterm="", n=_CONTEXT
    )
    return tuple(_moved(line, first) if line.startswith("@@") else line for line in list(lines)[2:])


def _moved(head: str, by: int) -> str:
    """The head of a hunk, with its line numbers moved: ``@@ -1,3 +1,4 @@``."""

    def moved(part: str) -> str:
        number, comma, size = part[1:].partition(",")
        return f"{part[0]}{int(number) + by}{comma}{size}"

    _, old, new, _ = head.split(" ")
    return f"@@ {moved(old)} {moved(new)} @@"


class _Kind(NamedTuple):
    """A kind of fact: the phrases that precede one that was added or removed. The texts of a flow are names of origins."""

    added: str
    removed: str
    is_flow: bool = False


class _Facts:
    """The facts of a manifest: sets of texts by their kind, each text with its risk; and the bounds by tool."""

    def __init__(self, manifest: Manifest) -> None:
        # A change in the middle of a long constant is a change.
        self._words = Words(manifest, MAX_TEXT, MAX_TEXT)
        self.payloads: dict[tuple[str, str], dict[str, int]] = {}
        self.sets: dict[_Kind, dict[str, int]] = {}
        self.bounds: dict[str, tuple[str, int]] = {}
        self.hosts: set[str] = set()
        self.origins = {self._words.call(i) for i in range(len(manifest.calls))}
        for call in manifest.calls:
            self._add_call(call)
        for effect in planned_effects(manifest, self._words):
            tool = visible(effect.tool)
            known = self.bounds.get(tool)
            text = f"{known[0]} and {effect.bound}" if known else effect.bound
            self.bounds[tool] = (text, effect.risk)
            for flow in effect.flows:
                if not flow.is_shown:
                    self._add(
                        _flow(f"the {visible(flow.parameter)} of {tool}"), flow.origins or (flow.value,), effect.risk
                    )
            decided = _Kind(
                f"when and how often {tool} is called now also depends on",
                f"calls of {tool} no longer depend on",
            )
            self._add(decided, effect.control, effect.risk)
        result = [*values_in(manifest.result)]
        self._add(_flow("the result"), self._words.origins(o for v in result for o in (*v.data, *v.control)), 1)
        self._add(_flow("what it prints"), self._words.origins(manifest.printed), 1)
        self._add(_flow("the message of an error"), self._words.origins(manifest.raised), 1)

    def _add_call(self, call: PlannedCall) -> None:
        risk = risk_of(call.effects)
        if risk >= RISKS["write"]:
            tool = visible(call.tool)
            tests = _Kind(
                f"what {tool} does now depends on a comparison with", f"{tool} no longer depends on a comparison with"
            )
            self._add(tests, map(self._words.comparison, call.compared), risk)
            choices = _Kind(f"what {tool} does is now chosen by", f"what {tool} does is no longer chosen by")
            self._add(choices, map(visible, call.picked), risk)
        for name, value in call.arguments.items():
            use = call.uses.get(name)
            if use == "url":
                self._add_hosts(call, value, risk)
            if use in VERBS:
                verb = VERBS[use]
                self._add(
                    _Kind(f"now also {verb}", f"no longer {verb}"), self._words.alternatives(value, use or ""), risk
                )
            elif use == "payload" or not call.uses:
                known = self.payloads.setdefault((visible(label_of(name)), visible(call.tool)), {})
                known |= dict.fromkeys(self._words.alternatives(value), risk)
                known |= {f"made with {self._words.constant(c)}": risk for c in value.made}
            else:
                what = f"{visible(label_of(name))} of {visible(call.tool)}"
                self._add(
                    _Kind(f"the {what} can now be", f"the {what} is no longer"), self._words.alternatives(value), risk
                )

    def _add_hosts(self, call: PlannedCall, value: Value, risk: int) -> None:
        verb = "sends to" if data_of(*call.used("payload")) else "asks"
        hosts = [host_of(one) for each in values_in(value) for one in each.alternatives]
        known = [h for h in hosts if h is not None]
        self.hosts.update(known)
        self._add(_Kind(f"now also {verb}", f"no longer {verb}"), known, risk)

    def _add(self, kind: _Kind, texts: Iterable[str], risk: int) -> None:
        by_text = self.sets.setdefault(kind, {})
        by_text |= {text: max(risk, by_text.get(text, 0)) for text in texts}


def _flow(what: str) -> _Kind:
    return _Kind(f"{what} now also comes from", f"{what} no longer comes from", is_flow=True)
