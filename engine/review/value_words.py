"""The words for the values, origins and bounds of a manifest: ``{folder}/**``, ``read_file({path})``, ``at most 3 × …``.

A constant comes from the text of an agent. It is quoted, unless it is one plain part of a longer text, and it is shortened in the
middle, because the dangerous part may be at either end. So no constant can imitate a hole or a line of ours.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence

from albert_tools.engine.model.fixed_hosts import host_of
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.model.manifest import (
    Alternative,
    Bound,
    Comparison,
    Hole,
    Manifest,
    Origin,
    Part,
    PlannedCall,
    Symbol,
    Value,
    with_paths,
)
from albert_tools.engine.model.marked_paths import holds_credentials, is_executed
from albert_tools.engine.model.messages import listed
from albert_tools.engine.model.visible_text import visible

#: The word for a value about which nothing is known. It is loud on purpose.
ANYTHING = "ANYTHING"
#: The words for files that hold credentials, and for those that others execute.
CREDENTIALS, EXECUTED = "CREDENTIALS", "OTHERS EXECUTE IT"
#: The most characters of a constant, alternatives of a value, and origins in a list that are shown.
MAX_CONSTANT, MAX_ALTERNATIVES, MAX_ORIGINS = 80, 20, 8
#: The most characters of a constant that is content, such as the text of a file, before its middle is folded.
MAX_CONTENT = 1_000
#: More characters than any source, and any constant in one, has.
MAX_TEXT = 10_000_000
#: How deep the name of an output names the calls that its own call depends on.
_MAX_DEPTH = 1
_NUMBERS = {1: "one", 2: "two", 3: "three"}
#: A constant that is shown without quotes beside holes.
_PLAIN = re.compile(r"[\w./:@%+=~?&#-]*\Z", re.ASCII)
#: A key that is shown without quotes.
_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
#: The words for the encodings of values.
_ENCODINGS = {
    "json": "JSON",
    "query": "query",
    "row": "CSV",
    "base64": "base64 of",
    "percent": "percent-encoded",
    "joined": "any number of",
}
#: A constant that may be a path with a hidden part, or outside of the workspace.
_STRIKING = re.compile(r"[\"/][./~]")


class Words:
    """The words for one manifest, whose calls give the origins their names.

    Attributes:
        longest: The most characters of a constant before its middle is left out. With more than `MAX_CONSTANT`, all alternatives
            of a value are shown.
        longest_in_name: The same inside the name of a call.
    """

    def __init__(self, manifest: Manifest, longest: int = MAX_CONSTANT, longest_in_name: int = MAX_CONSTANT) -> None:
        self._calls = manifest.calls
        self._limits = (longest, longest_in_name)
        self._depth = 0
        #: The names of calls by their number, and how deep inside another name they are.
        self._names: dict[tuple[int, int], str] = {}

    @property
    def _longest(self) -> int:
        return self._limits[1 if self._depth else 0]

    @property
    def _most(self) -> int:
        return MAX_TEXT if self._longest > MAX_CONSTANT else MAX_ALTERNATIVES

    # Values

    def value(self, *values: Value, use: str = "") -> str:
        """All that these values can be: ``{output} or "report.md"``. `use` is what the call does with them, see `_mark`."""
        alternatives = list(dict.fromkeys(one for value in values for one in self.alternatives(value, use)))
        if len(alternatives) > MAX_ALTERNATIVES:
            # Constants come last, and are left out, never what somebody else can choose. Hidden and absolute paths are the first.
            fixed = {self.alternative(a) for value in values for a in value.alternatives if is_constant(a)}
            alternatives.sort(key=lambda text: text in fixed and (2 if _STRIKING.search(text) is None else 1))
        made = dict.fromkeys(self.constant(c) for value in values for c in value.made)
        with_them = f" with {_joined([*made], self._most, ', ')}" if made and not self._depth else ""
        return f"{_joined(alternatives, self._most)}{with_them}" if alternatives else "‹never reached›"

    def constant(self, value: str | float) -> str:
        """A constant on its own."""
        return _quoted(value, self._longest) if isinstance(value, str) else json.dumps(value)

    def comparison(self, one: Comparison) -> str:
        """A comparison: ``".tmp" (endswith)``, ``200 (<)``."""
        return f"{self.constant(one.constant)} ({one.by})" if one.by else self.constant(one.constant)

    def alternatives(self, value: Value, use: str = "") -> list[str]:
        """Each text, list or object that a value can be."""
        told = [a for a in value.alternatives if not (value.open and _is_unknown(a, value.data))]
        some = [a for a in told if a is not None]
        alternatives = list(dict.fromkeys(self.alternative(one, value.data, use) for one in some or told))
        if value.places is not None:
            alternatives.append(f"[{', '.join(self.value(v, use=_inside(use)) for v in value.places)}]")
        elif value.items is not None:
            alternatives.append(f"[{self.value(value.items, use=_inside(use))}, …]")
        if value.fields or value.rest is not None:
            fields = [f"{self._key(k)}={self._inner(v, use)}" for k, v in (value.fields or {}).items()]
            fields += [f"…={self._inner(value.rest, use)}"] if value.rest is not None else []
            alternatives.append(", ".join(fields))
        elif value.fields is not None:
            alternatives.append("no fields")
        if value.open:
            alternatives.append(f"{_unknown('any value', value.data, use)}{self._from(value.data)}")
        return alternatives

    def _key(self, name: str) -> str:
        return name if _NAME.fullmatch(name) else _quoted(name, self._longest)

    def _inner(self, value: Value, use: str) -> str:
        text = self.value(value, use=_inside(use))
        return f"({text})" if value.fields or value.rest is not None else text

    def alternative(self, one: Alternative, data: Sequence[Origin] = (), use: str = "") -> str:
        """A constant, or a template: ``https://example.org/{name}``. `data` are the origins of the value that it belongs to."""
        mark = _mark(one, use)
        return f"{self._alternative(one, data, use)} ({mark})" if mark else self._alternative(one, data, use)

    def _alternative(self, one: Alternative, data: Sequence[Origin], use: str) -> str:
        if not isinstance(one, tuple):
            return json.dumps(one)
        if is_constant(one):
            return _quoted("".join(part for part in one if isinstance(part, str)), self._longest)
        if len(one) == 1 and isinstance(one[0], Hole) and one[0].kind == "any":
            return f"{_unknown('any text', one[0].data or data, use)}{self._from(one[0].data or data)}"
        # Behind a fixed host, any text is no danger by itself.
        fixed = use == "url" and host_of(one) is not None
        anything = "any text" if fixed else _unknown("any text", data, use)
        parts = with_paths(one)
        # Which of the origins are those of which hole is not known, so they are listed once.
        unknown = [part.data or tuple(data) for part in parts if isinstance(part, Hole) and part.kind == "any"]
        origins = self._from(unknown[0]) if len(unknown) > 1 and len(set(unknown)) == 1 else ""
        texts = [
            f"‹{anything}›"
            if origins and isinstance(part, Hole) and part.kind == "any"
            else self._part(part, data, anything, use)
            for part in parts
        ]
        if any(isinstance(part, Hole) and part.kind == "quoted" for part in parts):
            text = _one_text(parts, texts, self._longest)
        else:
            text = "".join(texts)
        return f"{text} (‹{anything}›{origins})" if origins else text

    def _part(self, part: Part, data: Sequence[Origin], anything: str, use: str) -> str:
        if isinstance(part, str):
            return part if len(part) <= self._longest and _PLAIN.match(part) else _quoted(part, self._longest)
        if part.value is not None:
            text = self.value(part.value, use=_inside(use))
            if part.of:
                return f"‹{text}, joined by {self.alternative(part.of, data)}›"
            return f"‹{_ENCODINGS[part.kind]} {text}›"
        place = _place(part.path)
        match part.kind:
            case "parameter":
                return f"{{{visible(part.name)}{place}}}"
            case "output":
                return f"‹{place.lstrip('.') or 'output'} of {self.call(part.call)}›"
            case "part":
                return f"‹part of {self.alternative(part.of, data)}›"
            case "name":
                return f"‹name in {self.alternative(part.of, data)}›" if part.of else f"‹name{self._from(data)}›"
            case "quoted":
                return f"‹quoted {self.alternative(part.of, data)}›"
            case "below":
                return "/**"
            case "inside":
                return "**"
            case "any":
                return f"‹{anything}{self._from(part.data or data)}›"
        return f"‹{part.kind}›"

    # Origins

    def origins(self, origins: Iterable[Origin]) -> list[str]:
        """The names of origins, each once: parameters first."""
        names = {self.origin(o): not o.startswith("parameter:") for o in origins}
        return sorted(names, key=lambda name: (names[name], name))

    def origin(self, origin: Origin) -> str:
        """``{folder}`` for a parameter, ``read_file({path})`` for the output of a call."""
        kind, _, name = origin.partition(":")
        if kind == "parameter":
            return f"{{{visible(name)}}}"
        return self.call(int(name)) if name.isdecimal() else visible(origin)

    def call(self, number: int) -> str:
        """A call in few words: ``read_file({path})``."""
        if not 0 <= number < len(self._calls):
            return "a call"
        key = (number, self._depth)
        if key not in self._names:
            self._names[key] = self._name(self._calls[number])
        return self._names[key]

    def _name(self, call: PlannedCall) -> str:
        tool = visible(call.tool)
        if self._depth >= _MAX_DEPTH:
            return f"{tool}(…)"
        self._depth += 1
        try:
            shown = next((n for n in call.uses if n in call.arguments and call.uses[n] != "payload"), None)
            if shown is None:
                return tool
            return f"{tool}({self.value(call.arguments[shown], use='url' if call.uses[shown] == 'url' else '')})"
        finally:
            self._depth -= 1

    def _from(self, origins: Sequence[Origin]) -> str:
        # The name of a call only tells calls apart.
        return f" from {listed(self.origins(origins), MAX_ORIGINS)}" if origins and not self._depth else ""

    # Bounds

    def bound(self, bound: Bound) -> str:
        """``at most once``, ``at most 3 × length of list_directory({folder})``."""
        most = RunLimits().calls
        number = sum(term.times for term in bound) if bound is not None else most
        if bound is None or (number >= most and all(not term.of for term in bound)):
            return f"up to {most:,} ×, the limit of a run"
        if all(not term.of for term in bound):
            return "never" if not number else "at most once" if number == 1 else f"at most {number:,} ×"
        terms = [
            " × ".join([*([f"{t.times:,}"] if t.times != 1 or not t.of else []), *map(self._symbol, t.of)])
            for t in sorted(bound, key=lambda term: len(term.of))
        ]
        return f"at most {' + '.join(terms)}"

    def _symbol(self, symbol: Symbol) -> str:
        kind, _, name = symbol.origin.partition(":")
        place = _place(symbol.path)
        if kind == "parameter":
            inner = f"{{{visible(name)}{place}}}"
            return inner if symbol.kind == "value" else f"length of {inner}"
        where = f"{place.lstrip('.')} of {self.origin(symbol.origin)}" if place else self.origin(symbol.origin)
        if symbol.kind == "value":
            return where if place else f"number of {where}"
        return f"length of {where}"


def via_words(calls: Iterable[PlannedCall]) -> list[str]:
    """Through which saved tools calls are made, by depth: ``two tools down: by send_all → post, by report → post``."""
    by_depth: dict[int, dict[str, None]] = {}
    for call in calls:
        if call.via:
            by_depth.setdefault(len(call.via), {})[f"by {' → '.join(map(visible, call.via))}"] = None
    return [
        f"{_NUMBERS.get(n, n)} tool{'s' if n > 1 else ''} down: {', '.join(paths)}"
        for n, paths in sorted(by_depth.items())
    ]


def is_constant(one: Alternative) -> bool:
    """Whether nothing of a value comes from parameters or data."""
    return not isinstance(one, tuple) or all(isinstance(part, str) for part in one)


def _is_unknown(one: Alternative, data: Sequence[Origin]) -> bool:
    """Whether a value is any text, or at any place below a parameter that is among these origins."""
    only = one[0] if isinstance(one, tuple) and len(one) == 1 else ""
    if isinstance(only, str):
        return False
    return only.kind == "any" or (only.path.endswith("~") and f"parameter:{only.name}" in data)


def is_anything(value: Value) -> bool:
    """Whether nothing is known about a value, or about a text in it."""
    holes = [a[0] for a in value.alternatives if isinstance(a, tuple) and len(a) == 1]
    return value.open or any(isinstance(h, Hole) and h.kind == "any" for h in holes)


def is_loud(text: str) -> bool:
    """Whether the words of a value say that nothing is known about it, or that it is a file with a meaning."""
    return any(word in text for word in (ANYTHING, CREDENTIALS, EXECUTED))


def _inside(use: str) -> str:
    return use if use == "payload" else ""


def _unknown(known: str, data: Sequence[Origin], use: str) -> str:
    """The word for what is not known. In a content whose origins are known, it is no danger by itself."""
    return known if data and use == "payload" else ANYTHING


def _mark(one: Alternative, use: str) -> str:
    """The mark of a path that is a file with a meaning, whatever fills its holes; empty if it is none, or the use is no path."""
    if use not in ("read", "write", "delete") or not isinstance(one, tuple) or not any(isinstance(p, str) for p in one):
        return ""
    path = "".join(part if isinstance(part, str) else "/x" if part.kind == "below" else "x" for part in with_paths(one))
    if holds_credentials(path):
        return CREDENTIALS
    return EXECUTED if use != "read" and is_executed(path) else ""


def _place(path: str) -> str:
    return visible(path).replace("~", "…")


def _quoted(text: str, longest: int) -> str:
    """A constant as JSON, on one line, with its middle left out if it is long."""
    if len(text) <= longest:
        return visible(json.dumps(text, ensure_ascii=False))
    half = longest // 2
    first, last = (visible(json.dumps(t, ensure_ascii=False)) for t in (text[:half], text[-half:]))
    hidden = f"{len(text) - 2 * half:,} characters"
    if longest > MAX_CONSTANT:
        # Two versions of a long text can be told apart by their hash.
        hidden += f", SHA-256 of the whole {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return f"{first} … {hidden} … {last}"


def _one_text(parts: Sequence[Part], texts: Sequence[str], longest: int) -> str:
    """A command as one text in quotes: ``"tar -xf ‹quoted {path}›"``. Constants can't imitate the holes in it."""
    if any(isinstance(part, str) and len(part) > longest for part in parts):
        return "".join(texts)
    pieces = [
        visible(json.dumps(part, ensure_ascii=False)[1:-1]).replace("‹", "\\u2039").replace("›", "\\u203a")
        if isinstance(part, str)
        else text
        if text.startswith("‹")
        else f"‹{text}›"
        for part, text in zip(parts, texts, strict=True)
    ]
    return f'"{"".join(pieces)}"'


def _joined(alternatives: list[str], most: int, separator: str = " or ") -> str:
    rest = len(alternatives) - most
    shown = alternatives[:most] + ([f"{rest:,} MORE"] if rest > 0 else [])
    return separator.join(shown)
