"""One sentence about a tool, from its manifest alone: "Reads {folder}/** and sends what it reads to api.example.org."

The author's docstring has no part in it. Each kind of call has one clause; the order is that of a story: what the tool takes in,
what it changes, what it sends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from albert_tools.engine.model.fixed_hosts import fixed_hosts
from albert_tools.engine.model.manifest import Manifest, Origin, PlannedCall, Value, call_of, data_of, values_in
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.call_warnings import call_warnings, environment
from albert_tools.engine.review.planned_effects import SENT, planned_effects
from albert_tools.engine.review.value_words import Words, is_anything, is_constant, is_loud

#: The most resources of one kind that the sentence names.
_MAX_NAMED = 3
#: What the output of a call is, by its effects.
_OUTPUTS = (
    ("network", "what it receives"),
    ("execute", "what commands print"),
    ("secret", "secrets"),
    ("read", "what it reads"),
)


def sentence(manifest: Manifest) -> str:
    """What a tool does, as its manifest says."""
    clauses = [*_Clauses(manifest).all()] or ["computes its result and calls no tools"]
    text = clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"
    return f"{text[0].upper()}{text[1:]}{_leak(manifest)}."


def _leak(manifest: Manifest) -> str:
    """What a host can learn from which requests are made, a bit at a time, as the end of a sentence."""
    local = {f"call:{i}" for i, call in enumerate(manifest.calls) if "network" not in call.effects}
    origins = {
        origin
        for effect in planned_effects(manifest)
        if "network" in effect.effects
        for origin in effect.decided & local
    }
    if any("network" in call.effects for call in manifest.calls):
        # A pause tells a host something, too.
        pauses = [call for call in manifest.calls if not call.effects and not call.source]
        origins |= {o for call in pauses for o in data_of(*call.arguments.values())} & local
    names = Words(manifest).origins(origins)
    return f"; by which requests it makes, and when, it can tell a host about {_listed(names)}" if names else ""


class _Clauses:
    def __init__(self, manifest: Manifest) -> None:
        self._calls = manifest.calls
        self._words = Words(manifest)

    def all(self) -> Iterator[str]:
        """The clauses. Each call with an effect is in at least one of them."""
        moving = {i for i, call in enumerate(self._calls) if {"write", "delete"} <= set(call.uses.values())}
        moves = dict.fromkeys(self._move(i) for i in sorted(moving, key=lambda i: (self._call_fixed(i), i)))
        named = set(moving)
        for use, verb in (("read", "reads"), ("write", "writes"), ("delete", "DELETES")):
            accesses = [(i, v) for i, v in self._used(use) if use == "read" or i not in moving]
            # A call that reads and does more has another clause, too.
            named |= {i for i, _ in accesses if use != "read" or set(self._calls[i].effects) <= {"read"}}
            if use == "write":
                yield from self._writes(accesses)
            elif accesses:
                yield f"{verb} {self._list((v for _, v in accesses), use=use)}"
            if use == "write" and moves:
                yield f"moves {_listed([*moves])}"
        commands = [(i, v) for use in ("shell", "program") for i, v in self._used(use)]
        # What somebody else can choose comes first, so it is never among those that are only counted.
        commands.sort(key=lambda command: self._call_fixed(command[0]))
        if commands:
            yield f"runs {_listed([*dict.fromkeys(self._command(i, v) for i, v in commands)])}"
        named |= {i for i, _ in commands}
        programs = [(i, v) for i, v in self._used("arguments")]
        for tool in dict.fromkeys(self._calls[i].tool for i, _ in programs):
            yield f"runs {visible(tool)} with {self._list(v for i, v in programs if self._calls[i].tool == tool)}"
        named |= {i for i, _ in programs}
        urls = {i for i, _ in self._used("url")}
        requests = [i for i, c in enumerate(self._calls) if i in urls or ("network" in c.effects and i not in named)]
        by_target: dict[str, set[Origin]] = {}
        secrets: dict[str, dict[str, None]] = {}
        hosts: set[str] = set()
        for i in requests:
            hosts.update(self._targets(self._calls[i]) if i in urls else ())
            for target in self._targets(self._calls[i]):
                by_target.setdefault(target, set()).update(self._sent(self._calls[i]))
                secrets.setdefault(target, {}).update(self._secrets(self._calls[i]))
        for target, sent in by_target.items():
            what = self._contents({o for o in sent if self._words.origin(o) not in target}, secrets=[*secrets[target]])
            verb = "connects" if target in hosts else "sends"
            yield f"sends {what} to {target}" if what else f"{verb} to {target}"
        named |= set(requests)
        rest = [c for i, c in enumerate(self._calls) if i not in named and (c.effects or not named)]
        others = dict.fromkeys(visible(c.tool) for c in rest)
        if others:
            yield f"calls {_listed([*others])}"

    def _used(self, use: str) -> Iterator[tuple[int, Value]]:
        for i, call in enumerate(self._calls):
            yield from ((i, call.arguments[n]) for n, u in call.uses.items() if u == use and n in call.arguments)

    def _writes(self, writes: Sequence[tuple[int, Value]]) -> Iterator[str]:
        """A clause for each kind of content: what the tool has taken in, or only parameters and constants."""
        by_content: dict[str, list[Value]] = {}
        for i, path in writes:
            origins = data_of(*self._calls[i].used("payload"))
            by_content.setdefault(self._contents(origins, parameters=False), []).append(path)
        for content, paths in by_content.items():
            named = self._list(paths, use="write")
            yield f"writes {content} to {named}" if content else f"writes {named}"

    def _command(self, number: int, value: Value) -> str:
        call = self._calls[number]
        variables = dict.fromkeys(
            text for each in call.used("environment") for text, _ in environment(each, self._words)
        )
        dangers = [text for text in call_warnings(call, self._words) if text not in variables]
        text = f"{self._list([value], 'ANY COMMAND')} {_listed([*variables])}".strip()
        return f"{text} ({'; '.join(dangers)})" if dangers and not is_anything(value) else text

    def _move(self, number: int) -> str:
        gone, made = ([v for i, v in self._used(use) if i == number] for use in ("delete", "write"))
        return f"{self._list(gone)} to {self._list(made, use='write')}"

    def _list(self, values: Iterable[Value], anything: str = "ANYTHING", use: str = "") -> str:
        # What somebody else can choose, and files with a meaning, come first, so they are never among those that are only counted.
        ordered = sorted(values, key=_fixed)
        texts = [anything if _fixed(v) == 0 else self._words.value(v, use=use) for v in ordered]
        texts.sort(key=lambda text: not is_loud(text))
        return _listed([*dict.fromkeys(texts)])

    def _call_fixed(self, number: int) -> int:
        """How much of a call is fixed, see `_fixed`. A warning counts as if nothing were."""
        call = self._calls[number]
        if next(call_warnings(call, self._words), None) is not None:
            return 0
        return min((_fixed(call.arguments[n]) for n in call.uses if n in call.arguments), default=2)

    def _targets(self, call: PlannedCall) -> Sequence[str]:
        """The hosts or recipients of a request."""
        urls = call.used("url")
        known = [fixed_hosts(url) for url in urls]
        if urls:
            return [h for hosts, url in zip(known, urls, strict=True) for h in (hosts or [self._unknown(url)])]
        if destinations := call.used("destination"):
            return [self._list(destinations)]
        models = call.used("model")
        return [f"the model {self._list(models)}" if models else f"where {visible(call.tool)} connects"]

    def _unknown(self, url: Value) -> str:
        return "ANY HOST" if is_anything(url) else f"the host of {self._words.value(url)}"

    def _sent(self, call: PlannedCall) -> set[Origin]:
        return {*data_of(*(v for n, v in call.arguments.items() if not call.uses or call.uses.get(n) in SENT))}

    def _secrets(self, call: PlannedCall) -> dict[str, None]:
        """The secrets that a request carries, in words."""
        return dict.fromkeys(f"the secret {self._words.value(name)}" for name in secrets_of(call))

    def _contents(self, origins: Collection[Origin], parameters: bool = True, secrets: Sequence[str] = ()) -> str:
        """What a request carries, in few words. Parameters are named only if it carries nothing else."""
        numbers = [n for n in map(call_of, origins) if n is not None and n < len(self._calls)]
        effects = {e for n in numbers for e in self._calls[n].effects}
        words = [*(word for effect, word in _OUTPUTS if effect in effects), *secrets]
        if not words and not parameters:
            return ""
        return (
            _listed(words) if words else _listed(self._words.origins(o for o in origins if o.startswith("parameter:")))
        )


def secrets_of(call: PlannedCall) -> Iterator[Value]:
    """The names of the secrets that a request carries: ``{"secret": NAME, "prefix"?: TEXT}`` as a value of its headers."""
    for fields in (v.fields for each in call.used("payload") for v in values_in(each) if v.fields is not None):
        if "secret" in fields and fields.keys() <= {"secret", "prefix"}:
            yield fields["secret"]


def _fixed(value: Value) -> int:
    """0 if a value can be anything, 1 if a part of it comes from parameters or data, 2 if it is fixed."""
    inner = [*values_in(value)]
    if any(map(is_anything, inner)):
        return 0
    return 2 if all(is_constant(one) for v in inner for one in v.alternatives) else 1


def _listed(items: Sequence[str]) -> str:
    if len(items) > _MAX_NAMED:
        return listed(items, _MAX_NAMED)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
