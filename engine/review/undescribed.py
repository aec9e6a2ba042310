"""What a tool does and its author does not mention: "deletes {folder}/**", "sends to collector.example.com".

The author's words are compared with the manifest by names and by kinds of effects, and nothing is guessed about the rest of the
language. A *name* is a fixed host, path, program or secret: the tool's name or description must have it, or its telling part, as a
word. A *kind* is deletion, moving, writing, execution or a request: one of the field's verbs for it must occur (`_VERBS`). A verb
after "not" or "without" does not count. So a tool that is described in another language than English has more findings than it
should, and never fewer.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator

from albert_tools.engine.model.definition import ToolDefinition, ToolVersion
from albert_tools.engine.model.fixed_hosts import host_of
from albert_tools.engine.model.manifest import (
    Alternative,
    Manifest,
    PlannedCall,
    Value,
    alternatives_in,
    call_of,
    data_of,
)
from albert_tools.engine.model.marked_paths import holds_credentials, is_executed
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.planned_effects import SENT
from albert_tools.engine.review.sentences import secrets_of
from albert_tools.engine.review.value_words import Words, is_constant
from albert_tools.engine.shell.judge import judge_argv, judge_command
from albert_tools.engine.shell.verdict import Part

_SEND = "send sent post upload submit publish push share email mail notify forward transmit deliver"
_CHANGE = (
    "write wrote written save create make made add append insert store put keep kept update replace change edit set fix convert "
    "generate build copy export import download install publish move rename format tidy trim strip remove delete clean sort "
    "rewrite overwrite initialise initialize normalise normalize prepend extract pack unpack compress archive collect apply patch"
)
#: The words that mention a kind of effect.
_VERBS = {
    "delete": "delete remove clean clear prune purge drop erase unlink wipe empty discard trash",
    "move": "move rename relocate archive sort rotate",
    "write": _CHANGE,
    "execute": (
        "run ran execute command shell script program process test lint linter build compile format typecheck install git commit "
        "branch repository push pull"
    ),
    "send": _SEND,
    "network": (
        f"{_SEND} request download fetch query ask call pull ping crawl scrape visit browse search url link http https web website "
        "internet online server host api webhook status model"
    ),
    "secret": "secret key token password credential authenticate authorization login",
}
_NEGATION = re.compile(
    r"\b(?:not|never|no|nor|nothing|none|neither|without|cannot|\w+n['’]t)\b[^.,;:!?\n]*", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")
#: A name with dots, such as that of a host.
_DOTTED = re.compile(r"[\w-]+(?:\.[\w-]+)+")
#: The least letters of two words, one of which begins with the other, to count as the same: ``chapter`` and ``chapters``.
_LEAST = 4
#: The most letters of a word or of the name of a program that are compared, and the most findings.
_MOST, _MAX_FOUND = 64, 20
#: What stands for a hole in a fixed text.
_HOLE = "\0"
#: Parts of the names of secrets that say nothing, and second parts of hosts such as ``bbc.co.uk``.
_GENERIC = frozenset("key token secret password api".split())
_SECOND = frozenset("co com org net ac gov edu".split())


def undescribed(version: ToolVersion, listed_hosts: Collection[str] = ()) -> tuple[str, ...]:
    """What a version does and its name and description do not mention, the riskiest first.

    `listed_hosts`, which the owner's rules name, need no mention.
    """
    omissions = [*dict.fromkeys(_Comparison(version.definition, version.manifest, listed_hosts).all())]
    more = [f"and {len(omissions) - _MAX_FOUND:,} more"] if len(omissions) > _MAX_FOUND else []
    return (*omissions[:_MAX_FOUND], *more)


class _Comparison:
    def __init__(self, definition: ToolDefinition, manifest: Manifest, listed_hosts: Collection[str]) -> None:
        self._listed = listed_hosts
        self._calls = manifest.calls
        self._words = Words(manifest)
        said = f"{definition.name} {definition.description}".casefold()
        self._names = frozenset(_WORD.findall(said.replace("_", " ")))
        self._sorted = sorted(self._names)
        self._dotted = frozenset(_DOTTED.findall(said))
        # A review does not show the texts of parameters, so they can mention kinds, but no names.
        kinds = _NEGATION.sub(" ", "\n".join([said, *(p.description.casefold() for p in definition.parameters)]))
        self._verbs = frozenset(_WORD.findall(kinds.replace("_", " ")))

    def all(self) -> Iterator[str]:
        for each in (self._requests, self._commands, self._secrets, self._deletions, self._writes, self._reads):
            for call in self._calls:
                yield from each(call)

    def _has_kind(self, kind: str) -> bool:
        return not _FORMS[kind].isdisjoint(self._verbs)

    def _has_name(self, *texts: str) -> bool:
        """Whether a word of these texts occurs in the name or the description."""
        return any(self._has_word(word[:_MOST]) for text in texts for word in _WORD.findall(_plain(text)))

    def _has_word(self, word: str) -> bool:
        """Whether a word occurs, also in the plural, or if one of both begins with the other."""
        beginnings = (word[:i] for i in range(_LEAST, len(word)))
        if not self._names.isdisjoint((word, f"{word}s", word.removesuffix("s"), *beginnings)):
            return True
        place = bisect_left(self._sorted, word)
        return len(word) >= _LEAST and place < len(self._sorted) and self._sorted[place].startswith(word)

    # Requests

    def _requests(self, call: PlannedCall) -> Iterator[str]:
        urls = call.used("url")
        if not urls and ("network" not in call.effects or "execute" in call.effects):
            return
        verb = "sends what it reads to" if self._carries(call) else "sends to" if _has_body(call) else "connects to"
        is_said = self._has_kind("send") or verb != "sends what it reads to"
        if not urls:
            if not (is_said and (self._has_kind("network") or self._is_called(call))):
                yield f"{verb} {self._recipient(call)}"
            return
        for value in urls:
            for host in [host_of(one) for one, _ in alternatives_in(value) if isinstance(one, tuple)]:
                known = host in self._listed or (self._has_host(host) if host else self._has_kind("network"))
                if not (is_said and known):
                    yield f"{verb} {host if host is not None else 'a host that is not fixed'}"

    def _has_host(self, host: str) -> bool:
        """The host, a domain that it belongs to, or the telling part of its name: ``github`` of ``api.github.com``."""
        name = host.casefold().partition(":")[0].rstrip(".")
        labels = name.split(".")
        if not self._dotted.isdisjoint(".".join(labels[i:]) for i in range(max(1, len(labels) - 1))):
            return True
        telling = labels[-3:-2] if len(labels) > 2 and labels[-2] in _SECOND else labels[-2:-1] or labels
        elsewhere = {label for dotted in self._dotted for label in dotted.split(".")}
        return any(label in self._names - elsewhere and not label.isdecimal() for label in telling)

    def _carries(self, call: PlannedCall) -> bool:
        """Whether a request carries what the tool has read on this machine."""
        sent = [v for n, v in call.arguments.items() if not call.uses or call.uses.get(n) in SENT]
        numbers = {n for n in map(call_of, data_of(*sent)) if n is not None and n < len(self._calls)}
        return any("network" not in self._calls[n].effects for n in numbers)

    def _recipient(self, call: PlannedCall) -> str:
        models = [self._words.value(v, use="model") for v in call.used("model")]
        return f"the model {models[0]}" if models else f"where {visible(call.tool)} connects"

    # Commands

    def _commands(self, call: PlannedCall) -> Iterator[str]:
        if "execute" not in call.effects:
            return
        commands = call.used("shell", "program")
        if not commands and not (self._has_kind("execute") or self._is_called(call)):
            yield f"runs {visible(call.tool)}"
        for value in commands:
            for program, is_special in _programs(value):
                by_kind = not is_special and self._has_kind("execute")
                if not (by_kind or (program and self._is_program(program))):
                    yield f"runs {visible(program) or 'a program that is not fixed'}"

    def _is_program(self, program: str) -> bool:
        """A program is also named by a part of its name: ``pytest`` by "test"."""
        name = posixpath.basename(program).casefold()[:_MOST]
        return self._has_name(name) or any(len(word) >= _LEAST and word in name for word in self._names)

    def _is_called(self, call: PlannedCall) -> bool:
        """Whether the words have a part of the name of a primitive, or of a fixed argument: ``git``, ``PUSH``."""
        fixed = [
            one
            for v in call.arguments.values()
            for one in v.alternatives
            if isinstance(one, tuple) and is_constant(one)
        ]
        return self._has_name(call.tool, *("".join(map(str, one)) for one in fixed))

    # Secrets

    def _secrets(self, call: PlannedCall) -> Iterator[str]:
        for secret in secrets_of(call):
            for name in secret.alternatives:
                parts = set(_WORD.findall(_plain(_fixed(name)))) - _GENERIC
                if not (self._has_name(*parts) or (not parts and self._has_kind("secret"))):
                    yield f"uses the secret {self._words.alternative(name, secret.data)}"

    # Files

    def _deletions(self, call: PlannedCall) -> Iterator[str]:
        if "execute" in call.effects:
            return
        moves = "write" in call.uses.values()
        verb, kind = ("moves", "move") if moves else ("deletes", "delete")
        paths = call.used("delete")
        if not paths and "delete" in call.effects and not (self._has_kind(kind) or self._is_called(call)):
            yield f"calls {visible(call.tool)}, which deletes"
        yield from self._paths(paths, verb, self._has_kind(kind))

    def _writes(self, call: PlannedCall) -> Iterator[str]:
        if "execute" in call.effects:
            return
        paths = call.used("write")
        if not paths and "write" in call.effects and not (self._has_kind("write") or self._is_called(call)):
            yield f"calls {visible(call.tool)}, which writes"
        moves = "delete" in call.uses.values()
        yield from self._paths(paths, "writes", moves or self._has_kind("write"))

    def _reads(self, call: PlannedCall) -> Iterator[str]:
        yield from self._paths(call.used("read"), "reads", True)

    def _paths(self, values: Iterable[Value], verb: str, has_kind: bool) -> Iterator[str]:
        use = {"writes": "write", "reads": "read"}.get(verb, "delete")
        for value in values:
            for one, data in alternatives_in(value):
                if isinstance(one, tuple) and not (has_kind and self._has_path(_fixed(one), verb)):
                    yield f"{verb} {self._words.alternative(one, data, use)}"

    def _has_path(self, path: str, verb: str) -> bool:
        """A path is named by a word of one of its folders or of its name; a file with a meaning only by its name."""
        named = [stem for part in path.split("/") if _WORD.search(stem := posixpath.splitext(part)[0])]
        plain = path.replace(_HOLE, "x")
        if holds_credentials(plain) or (verb != "reads" and is_executed(plain)):
            named = named[-1:]
        return not named or self._has_name(*named)


def _programs(value: Value) -> Iterator[tuple[str, bool]]:
    """The programs that a command runs, empty for one that is not fixed, and whether each must be named.

    An ordinary command need not name its programs (see `shell.judge`), unless it has a URL.
    """
    if value.places is not None and not value.open:
        words = [_fixed(v.alternatives[0]) if len(v.alternatives) == 1 else _HOLE for v in value.places]
        if not words or _HOLE in words[0]:
            yield "", False
        else:
            judgement = judge_argv(tuple(word.replace(_HOLE, "x") for word in words))
            yield words[0], any(map(_is_special, judgement.parts))
        return
    if value.open or value.items is not None:
        yield "", False
    for text in map(_fixed, value.alternatives):
        if text.lstrip()[:1] in ("", _HOLE):
            yield "", False
            continue
        for part in judge_command(text.replace(_HOLE, "x")).parts:
            if part.only_runs or (part.verdict == "ordinary" and not part.argv):
                continue
            program = part.argv[0] if part.argv else part.text
            yield ("" if _HOLE in program else program), _is_special(part)


def _is_special(part: Part) -> bool:
    return part.verdict != "ordinary" or "://" in part.text


def _has_body(call: PlannedCall) -> bool:
    return bool(data_of(*call.used("payload")))


def _fixed(one: Alternative) -> str:
    """The fixed text of a template, with a mark for each hole."""
    return "".join(part if isinstance(part, str) else _HOLE for part in one) if isinstance(one, tuple) else str(one)


def _plain(text: str) -> str:
    return text.casefold().replace("_", " ").replace(_HOLE, " ")


def _forms(verb: str) -> Iterator[str]:
    """The forms of a regular verb or noun."""
    yield from (verb, f"{verb}s", f"{verb}es", f"{verb}ed", f"{verb}ing")
    if verb.endswith("e"):
        yield from (f"{verb}d", f"{verb[:-1]}ing")
    elif verb.endswith("y"):
        yield from (f"{verb[:-1]}ies", f"{verb[:-1]}ied")
    else:
        yield from (f"{verb}{verb[-1]}ing", f"{verb}{verb[-1]}ed")


_FORMS = {kind: frozenset(form for verb in verbs.split() for form in _forms(verb)) for kind, verbs in _VERBS.items()}
