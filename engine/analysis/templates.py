"""Templates: what is known about a text.

A template is a tuple of constant texts and holes. An alternative is a template, or a constant that is not a text. A template
that is a single hole also stands for a number, a boolean or null that is not known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from albert_tools.engine.model.manifest import Hole

#: The most alternatives of a value; constants may be more. The most parts of a template, and characters of a constant.
MAX_ALTERNATIVES, MAX_CONSTANTS, MAX_PARTS, MAX_CHARACTERS = 8, 64, 10, 10_000
#: What remains of a longer constant.
_KEPT_CHARACTERS = 200

ANY, NUMBER, WORD, BELOW, INSIDE = Hole("any"), Hole("number"), Hole("word"), Hole("below"), Hole("inside")
#: How often a path in normal form, to which something was added, can get its normal form again.
_MAX_NESTED = 1


class Constant(NamedTuple):
    """A number, a boolean or None. The name of the type tells 1, 1.0 and True apart."""

    type: str
    value: int | float | bool | None


class Count(NamedTuple):
    """A number that is at most the length of a value, plus `more`. `key` finds the value in the analysis's table of lengths."""

    key: object
    more: int = 0


Part: TypeAlias = str | Hole | Count
Template: TypeAlias = tuple[Part, ...]
Alternative: TypeAlias = Template | Constant
Alternatives: TypeAlias = frozenset[Alternative]

NOTHING: Alternatives = frozenset()
ANYTHING: Alternatives = frozenset({(ANY,)})
SOME_NUMBER: Alternatives = frozenset({(NUMBER,)})
TRUE_OR_FALSE: Alternatives = frozenset({Constant("bool", True), Constant("bool", False)})
NONE: Alternatives = frozenset({Constant("NoneType", None)})


def template(parts: Iterable[Part]) -> Template:
    """The normal form of a text: adjacent constants are one, and what is too long ends in an unknown text.

    The text of a parameter begins with an empty part. Without it, the template is the parameter, which may be a number.
    """
    merged: list[Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, str):
            if part and isinstance(last, str):
                merged[-1] = last + part
            elif part:
                merged.append(part)
            continue
        if isinstance(part, Count):
            part = NUMBER
        elif part.kind == "bytes":
            part = ANY
        elif part.kind == "inside" and isinstance(last, str) and last.endswith("/") and merged != ["/"]:
            part = BELOW
            merged[-1:] = [last.removesuffix("/")] if last != "/" else []
        if part.kind not in ("any", "below") or merged[-1:] != [part]:
            merged.append(part)
    if len(merged) > 1 and all(isinstance(part, Hole) and part.kind == "any" for part in merged):
        return (ANY,)
    for i, part in enumerate(merged):
        if isinstance(part, str) and len(part) > MAX_CHARACTERS:
            return (*merged[:i], part[:_KEPT_CHARACTERS], ANY)
    if len(merged) == 1 and _is_parameter(merged[0]):
        return ("", *merged)
    return tuple(merged) if len(merged) <= MAX_PARTS else template([*merged[:3], ANY])


def scalar_of(alternative: Alternative) -> tuple[object] | None:
    """The Python value of a constant alternative, in a tuple; None if it is not constant."""
    if isinstance(alternative, Constant):
        return (alternative.value,)
    if not alternative:
        return ("",)
    return (alternative[0],) if len(alternative) == 1 and isinstance(alternative[0], str) else None


@lru_cache(maxsize=1024, typed=True)
def constant(value: Hashable) -> Alternatives:
    """The alternatives of one Python constant. Bytes and other values are unknown."""
    if isinstance(value, str):
        return frozenset({template((value,))})
    if isinstance(value, float) and (not value or value != value):
        return SOME_NUMBER  # 0.0 equals -0.0, and nan does not equal itself
    if value is None or isinstance(value, bool | int | float):
        return frozenset({Constant(type(value).__name__, value)})
    return ANYTHING


def union(*sets: Alternatives) -> Alternatives:
    """One of several: alternatives that others cover are dropped, and too many become one that begins as they all do."""
    first = sets[0]
    if all(s is first or s <= first for s in sets[1:]):
        return first
    return _limited(frozenset().union(*sets))


def widened(alternatives: Alternatives) -> Alternatives:
    """The alternatives of a value that grows with each round: many constants become one unknown text, too."""
    return _limited(alternatives, 0) if len(alternatives) > MAX_ALTERNATIVES else alternatives


def _limited(all_of_them: Alternatives, max_constants: int = MAX_CONSTANTS) -> Alternatives:
    widest = [t for t in all_of_them if t and t[-1] == ANY and ANY not in t[:-1]]
    if widest and len(all_of_them) > 1:
        all_of_them = frozenset(
            t
            for t in all_of_them
            if (_is_scalar(t) and (ANY,) not in widest)
            or not any(t != w and _begins(t, w[:-1]) for w in widest if not isinstance(w, Constant))
        )
    if len(all_of_them) <= MAX_ALTERNATIVES:
        return all_of_them
    if (NUMBER,) in all_of_them:
        all_of_them = frozenset(t for t in all_of_them if t == (NUMBER,) or not _is_numeral(t))
    if len(all_of_them) <= max_constants and all(scalar_of(t) is not None for t in all_of_them):
        return all_of_them
    plain = {t for t in all_of_them if isinstance(t, Constant) and isinstance(t.value, bool | None)}
    numbers = {t for t in all_of_them if isinstance(t, Constant)} - plain
    texts = [t for t in all_of_them if not isinstance(t, Constant)]
    kept: set[Alternative] = set(plain)
    if len(numbers) + len(plain) + 1 > MAX_ALTERNATIVES:
        kept.add((NUMBER,))
    else:
        kept |= numbers
    if len(texts) + len(kept) > MAX_ALTERNATIVES:
        # What begins a text need not be a text: a number stays one.
        scalars = [t for t in texts if _is_scalar(t)]
        texts = [template([*_common_start(texts), ANY])] if all(t == (NUMBER,) for t in scalars) else [(ANY,)]
        kept |= set(scalars[:1]) & {(NUMBER,)}
    # Only unknown texts that begin with nothing cover numbers, too.
    return frozenset({(ANY,)}) if (ANY,) in texts else frozenset(kept | {*texts})


def _is_scalar(t: Alternative) -> bool:
    """Whether a template stands for values that are no texts, too: it is a single hole."""
    return not isinstance(t, Constant) and len(t) == 1 and not isinstance(t[0], str)


def _is_numeral(t: Alternative) -> bool:
    """Whether a constant is a number, or the text of one."""
    if isinstance(t, Constant):
        return isinstance(t.value, int | float) and not isinstance(t.value, bool)
    return len(t) == 1 and isinstance(t[0], str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", t[0], re.ASCII) is not None


def _begins(t: Alternative, start: Template) -> bool:
    """Whether a template certainly begins with `start`."""
    if not start:
        return True
    if isinstance(t, Constant) or len(t) < len(start) or t[: len(start) - 1] != start[:-1]:
        return False
    own, wanted = t[len(start) - 1], start[-1]
    return own == wanted or (isinstance(own, str) and isinstance(wanted, str) and own.startswith(wanted))


def _common_start(texts: list[Template]) -> Template:
    start = min(texts, key=len)
    for t in texts:
        n = 0
        while n < min(len(start), len(t)) and start[n] == t[n]:
            n += 1
        rest: tuple[Part, ...] = ()
        if n < min(len(start), len(t)):
            a, b = start[n], t[n]
            if isinstance(a, str) and isinstance(b, str):
                rest = (posixpath.commonprefix([a, b]),)
        start = template([*start[:n], *rest])
    return start


def concatenated(left: Alternatives, right: Alternatives) -> Alternatives:
    """Every text of `left` followed by every text of `right`."""
    if len(left) * len(right) > MAX_CONSTANTS:
        left, right = _limited(left) if len(left) <= MAX_ALTERNATIVES else shortened(left), ANYTHING
    pairs = [template([*as_text(a), *as_text(b)]) for a in left for b in right]
    return _limited(frozenset(pairs))


def shortened(alternatives: Alternatives) -> Alternatives:
    """One alternative that begins as all of them do."""
    return frozenset({template([*_common_start([as_text(t) for t in alternatives]), ANY])})


def as_text(alternative: Alternative) -> Template:
    """The template of ``str(x)``."""
    if isinstance(alternative, Constant):
        return template((str(alternative.value),))
    return alternative


def stored(alternative: Alternative) -> tuple[str | Hole, ...]:
    """The template of ``str(x)`` inside of a hole."""
    return tuple(NUMBER if isinstance(p, Count) else p for p in as_text(alternative))


def texts(alternatives: Alternatives) -> Alternatives:
    """The alternatives of ``str(x)``."""
    return frozenset(template(as_text(t)) for t in alternatives)


def piece(alternative: Alternative) -> Template:
    """The template of a piece of a text: a line, a slice, a group of a match."""
    if isinstance(alternative, Constant):
        return (ANY,)
    alternative = tuple(p for p in alternative if p != "")
    if not alternative or alternative in ((ANY,), (WORD,)):
        return alternative
    if len(alternative) == 1:
        only = alternative[0]
        if isinstance(only, Count):
            return (NUMBER,)
        if isinstance(only, Hole) and only.kind == "part":
            return alternative
    if any(isinstance(p, Hole) and p.kind in ("any", "part", "number") for p in alternative):
        return (ANY,)
    return (Hole("part", of=tuple(p for p in alternative if not isinstance(p, Count))),)


def in_normal_form(alternative: Alternative, *below: Part) -> Template:
    """The template of a path that a tool has put into normal form, or of any path below it."""
    parts = as_text(alternative)
    if len(parts) == 1 and isinstance(parts[0], Hole) and parts[0].kind == "path":
        parts = parts[0].of
    whole = template([*parts, *below])
    if _can_lead_up(whole) or _nested(whole) > _MAX_NESTED:
        return (ANY,)
    return (Hole("path", of=tuple(p for p in whole if not isinstance(p, Count) and p != "")),)


def _can_lead_up(path: Template) -> bool:
    """Whether ``.`` and ``..`` can stand in or behind the first unknown part of a path: then any path can be its normal form."""
    if path and isinstance(path[0], Hole) and path[0].kind == "path":
        path = ("x" if _is_known(path[0]) else WORD, *path[1:])
    first = next((i for i, p in enumerate(path) if not isinstance(p, str) and not _is_parameter(p)), len(path))
    # The name that the first unknown part continues begins in the known text before it.
    before = path[first - 1] if 0 < first < len(path) else ""
    text = before.rpartition("/")[2] if isinstance(before, str) else ""
    for part in path[first:]:
        if isinstance(part, str):
            text += part
        elif isinstance(part, Hole) and part not in (WORD, NUMBER, BELOW) and not _is_plain_piece(part):
            return True
    return any(name in (".", "..") for name in text.split("/"))


def _nested(path: Template) -> int:
    """The number of paths in normal form at the beginning of a path, each inside of the next one."""
    first = path[0] if path else ""
    return 1 + _nested(first.of) if isinstance(first, Hole) and first.kind == "path" else 0


def _is_known(path: Hole) -> bool:
    """Whether a path in normal form consists of constant texts and parameters."""
    return all(isinstance(p, str) or p.kind == "parameter" or (p.kind == "path" and _is_known(p)) for p in path.of)


def _is_parameter(part: Part) -> bool:
    return isinstance(part, Hole) and part.kind == "parameter"


def constants_in(alternatives: Iterable[Alternative]) -> Iterator[str | float | None]:
    """The constants in alternatives: numbers, and the constant parts of texts, also inside of holes."""
    for alternative in alternatives:
        if isinstance(alternative, Constant):
            yield alternative.value
        else:
            yield from _constant_parts(alternative)


def _constant_parts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Hole) and part.of:
            yield from _constant_parts(part.of)


def is_given(alternative: Alternative) -> bool:
    """Whether a text is the whole text of a place in a parameter or an output."""
    parts = [p for p in alternative if p != ""]
    return len(parts) == 1 and isinstance(parts[0], Hole) and parts[0].kind in ("parameter", "output")


def _is_plain_piece(part: Hole) -> bool:
    """Whether a hole is a piece of a known text without points and slashes."""
    return part.kind == "part" and all(isinstance(p, str) and not {".", "/"} & set(p) for p in part.of)


def pieces(alternatives: Alternatives, known: Callable[[Alternative], list[Template]] | None = None) -> Alternatives:
    """The alternatives of pieces of a text. `known` says what a piece of one can be, if more is known about it."""
    options = [(known(t) if known is not None else None) or [piece(t)] for t in alternatives]
    return _limited(frozenset(t for some in options for t in some))
