"""Says whether a call lies inside a manifest: whether it is one of the planned calls, with arguments that the templates allow.

What is not known about a template counts as inside: an output of a call, and a piece of it, can be any text. The values of
parameters are known, so their holes are filled in. Paths are compared in their normal form.

A text is matched part by part. The state is the set of the places in the text at which the parts so far can end. So the time is
proportional to the length of the text, whatever the template is.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from albert_tools.engine.model.decoding import ends_of
from albert_tools.engine.model.manifest import ANY_NAME, ENCODED, Alternative, Hole, Part, PlannedCall, Value

#: The uses of arguments that are paths.
PATH_USES = frozenset({"read", "write", "delete", "folder"})
#: Characters of the longest text that is matched part by part. Of a longer one, only the constants at both ends are compared.
MAX_TEXT = 20_000
#: The most places of a text that are compared with texts.
MAX_COMPARED = 1_000_000
#: The most places of a text at which a value in an encoding is looked for. From more, it can end anywhere.
MAX_DECODED = 16
#: The longest text that is compared as a path to which something was added.
MAX_PATH = 1_000
#: The most texts with which a template can begin, if they must be compared as paths.
MAX_STARTS = 10_000

#: Computes the normal form of a path.
Spell = Callable[[str], str]
#: The texts that a part of a template can be; a hole if they are not known; or a function that finds the places in a text at which
#: the part can end, if it begins at one of these.
_Option: TypeAlias = tuple[str, ...] | Hole | Callable[[set[int], str], set[int]]
_STEP = re.compile(r"\.([^.\[\]~*]+)|\[(\d+)\]|\[\*\]|\.\*|~\Z")
#: A name in a path that leads up.
_UP, _UP_FIRST = re.compile(r"/\.\.(?=/|\Z)"), re.compile(r"\.\.(?=/|\Z)")
#: Numbers include ``1e-05``, ``inf``, ``nan`` and ``(1+2j)``.
_RUNS = {
    "number": re.compile(r"(?:[-+0-9einfajEINFAJ()]|\.(?=[0-9]))*"),
    "word": re.compile(r"[-_A-Za-z0-9]*"),
    "name": re.compile(r"[^/]*"),
}


def normal(path: str) -> str:
    """The normal form of a path: ``./a//b`` is ``a/b``. An empty path is the folder itself."""
    return posixpath.normpath(path or ".")


def outside(
    planned: Sequence[PlannedCall],
    tool: str,
    arguments: Mapping[str, Any],
    given: Mapping[str, Any],
    spell: Spell = normal,
) -> str | None:
    """Why a call of a primitive is not one of the planned calls.

    Args:
        planned: The calls of a manifest.
        tool: The primitive.
        arguments: The arguments that the program has given.
        given: All arguments of the tool that has the manifest.
        spell: Computes the normal form of a path.

    Returns:
        A clause with the reason; None if one of the planned calls allows the call.
    """
    why = f"it does not call {tool}"
    for one in planned:
        if one.tool == tool:
            wrong = _wrong_argument(one, arguments, given, spell)
            if wrong is None:
                return None
            why = f"its calls of {tool} have another {wrong}" if wrong else f"its calls of {tool} have other arguments"
    return why


def inside(one: PlannedCall, arguments: Mapping[str, Any], given: Mapping[str, Any], spell: Spell = normal) -> bool:
    """Whether a planned call allows a call of its tool. See `outside`."""
    return _wrong_argument(one, arguments, given, spell) is None


def values_at(given: Mapping[str, Any], name: str, path: str = "") -> list[Any]:
    """The values of a parameter, or of a place in it: ``.rows[*].name``. A place that does not exist has none."""
    selected = [given[name]] if name in given else []
    for step in _STEP.finditer(path):
        if step[0] == "~":
            selected = [inner for value in selected for inner in _all_in(value)]
        elif step[2] is not None:
            selected = [
                value[int(step[2])] for value in selected if isinstance(value, list) and int(step[2]) < len(value)
            ]
        elif step[1] is None:
            selected = [inner for value in selected for inner in _items(value)]
        else:
            selected = [value[step[1]] for value in selected if isinstance(value, dict) and step[1] in value]
    return selected


def length(value: Any) -> int:
    """The number of items or characters of a value; of a number, those of its text."""
    return len(value) if isinstance(value, list | dict) else len(str(value))


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()


def _all_in(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict):
        yield from value
    for inner in _items(value):
        yield from _all_in(inner)


def _wrong_argument(
    one: PlannedCall, arguments: Mapping[str, Any], given: Mapping[str, Any], spell: Spell
) -> str | None:
    """The first argument that a planned call does not allow, an empty text if other arguments are given; None if all are right."""
    # An argument that is left out has its default. A planned call that stands for several has all their arguments.
    if not arguments.keys() <= one.arguments.keys() and ANY_NAME not in one.arguments:
        return ""
    for name, actual in arguments.items():
        match = _Match(given, spell, one.uses.get(name) in PATH_USES)
        if not match.value(one.arguments.get(name) or one.arguments[ANY_NAME], actual):
            return name
    return None


class _Match:
    """Compares values with what is known about them. Paths are compared in their normal forms."""

    def __init__(self, given: Mapping[str, Any], spell: Spell, is_path: bool) -> None:
        self._given = given
        self._spell = spell
        self._is_path = is_path
        self._paths: dict[tuple[Hole, str], bool] = {}

    def value(self, known: Value, actual: Any) -> bool:
        """Whether a JSON value is one that `known` describes."""
        if known.open or any(self._alternative(one, actual) for one in known.alternatives):
            return True
        if isinstance(actual, list):
            items, places = known.items, known.places
            if places is not None:
                return len(places) == len(actual) and all(map(self.value, places, actual))
            return items is not None and all(self.value(items, item) for item in actual)
        if isinstance(actual, dict) and (known.fields is not None or known.rest is not None):
            fields = known.fields or {}
            described = [(fields.get(name, known.rest), value) for name, value in actual.items()]
            return all(of is not None and self.value(of, value) for of, value in described)
        return False

    def _alternative(self, one: Alternative, actual: Any) -> bool:
        if not isinstance(one, tuple):
            return type(one) is type(actual) and one == actual
        if len(one) == 1 and isinstance(one[0], Hole) and (whole := self._hole(one[0], actual)) is not None:
            return whole
        if not isinstance(actual, str):
            return False
        if len(one) == 1 and isinstance(one[0], Hole) and one[0].kind == "json":
            return len(actual) in ends_of("json", actual, 0, partial(self._decoded, one[0]))
        options = [self._options(part) for part in one]
        first = one[0] if one else ""
        if isinstance(first, Hole) and first.kind == "path" and (len(one) == 1 or not isinstance(options[0], tuple)):
            return self._path_and_more(first, options[1:], actual)
        return _spans(options, actual) or (self._is_path and _path_spans(options, actual, self._spell))

    def _path_and_more(self, path: Hole, more: list[_Option], text: str) -> bool:
        """Whether a text is a path in normal form, and what was added to it."""
        if not more:
            return self._path(path, text)
        if len(text) > MAX_PATH:
            return not self._is_path and _spans([Hole("any"), *more], text)
        ends = (i for i in range(1, len(text) + 1) if _spans(more, text[i:]))
        return any(normal(text[:i]) == text[:i] and self._path(path, text[:i]) for i in ends)

    def _path(self, hole: Hole, path: str) -> bool:
        """Whether a path is one of a hole of this kind."""
        key = (hole, path)
        if key not in self._paths:
            options = [self._options(part) for part in hole.of]
            first = hole.of[0] if hole.of else ""
            if isinstance(first, Hole) and first.kind == "path" and not isinstance(options[0], tuple):
                spellings = (path, f"{path}/", f"./{path}", f"./{path}/")
                self._paths[key] = any(self._path_and_more(first, options[1:], text) for text in spellings)
            else:
                self._paths[key] = _path_spans(options, path, self._spell)
        return self._paths[key]

    def _hole(self, hole: Hole, actual: Any) -> bool | None:
        """Whether a value fills a hole that is the whole template; None if it must be matched as a text."""
        if hole.kind == "parameter":
            same = any(
                type(value) is type(actual) and value == actual
                for value in values_at(self._given, hole.name, hole.path)
            )
            return True if same else None
        if hole.kind == "output":
            return True
        if hole.kind == "path":
            return None
        if hole.kind == "any" or not isinstance(actual, str):
            return hole.kind in ("any", "part", "number") and not isinstance(actual, list | dict)
        return None

    def _decoded(self, hole: Hole, decoded: Any) -> bool:
        """Whether a hole that is a value in an encoding can be one of this value."""
        known = hole.value
        assert known is not None
        if hole.kind != "query":
            return self.value(known, decoded)
        of = [((known.fields or {}).get(name, known.rest), text) for name, text in decoded]
        return known.open or known.items is not None or all(v is not None and self._is_text(v, text) for v, text in of)

    def _is_text(self, known: Value, text: str) -> bool:
        """Whether a text can be ``str(x)`` of a value."""
        is_container = known.items is not None or known.fields is not None or known.rest is not None
        texts = ((str(one),) if not isinstance(one, tuple) else one for one in known.alternatives)
        return known.open or is_container or any(self._alternative(one, text) for one in texts)

    def _ends(self, hole: Hole, places: set[int], text: str) -> set[int]:
        """The places at which a hole that is a value in an encoding can end."""
        if hole.kind != "joined" and len(places) > MAX_DECODED:
            # Decoding at each of them would take quadratic time.
            return set(range(min(places), len(text) + 1))
        if hole.kind != "joined":
            fits = partial(self._decoded, hole)
            return {end for place in places for end in ends_of(hole.kind, text, place, fits)}
        assert hole.value is not None
        texts = [[*map(self._options, one)] for one in hole.value.alternatives if isinstance(one, tuple)]
        separator = [*map(self._options, hole.of)]
        reached, starts, done = set(places), places, set[int]()
        while starts:
            ends = set[int]().union(*(_after(options, starts, text) for options in texts))
            reached |= ends
            done |= starts
            starts = _after(separator, ends, text) - done
        return reached

    def _options(self, part: Part) -> _Option:
        """What is known about a part of a template."""
        if isinstance(part, str):
            return (part,)
        if part.kind == "parameter":
            return tuple(str(value) for value in values_at(self._given, part.name, part.path))
        kind: str = part.kind
        if kind == "path":
            known = _product([self._options(p) for p in part.of])
            return tuple(map(self._spell, known)) if known is not None else Hole("any")
        if kind in ("quoted", "part"):
            inner = [self._options(p) for p in part.of]
            texts = _product(inner)
            if texts is None:
                return Hole("any")
            return tuple(map(shlex.quote, texts)) if kind == "quoted" else Hole("part", of=texts)
        if kind in ENCODED:
            # A path is compared in its normal form, and a row of CSV can have any delimiter.
            return Hole("any") if self._is_path or kind == "row" else partial(self._ends, part)
        return part


def _product(options: Sequence[_Option]) -> tuple[str, ...] | None:
    """The texts that a template can be, if they are known and few."""
    texts: list[str] = [""]
    for option in options:
        if not isinstance(option, tuple) or len(texts) * len(option) > 100:
            return None
        texts = [before + text for before in texts for text in option]
    return tuple(texts)


def _path_spans(options: list[_Option], path: str, spell: Spell) -> bool:
    """Whether a path is one of a template, both in normal form. Of the template, only the known texts at its beginning have one."""
    start, rest = [""], list(options)
    while rest and isinstance(rest[0], tuple):
        known = rest.pop(0)
        assert isinstance(known, tuple)
        if len(start) * len(known) > MAX_STARTS:
            return False
        start = [before + text for before in start for text in known]
    normal_path = spell(path)
    if not rest:
        return normal_path in map(spell, start)
    # The normal form has no slash at its end, and a point instead of nothing.
    texts = [normal_path, f"{normal_path}/", *([""] if normal_path == "." else [])]
    if "" in start and Hole("below") in rest and not normal_path.startswith("/"):
        # The path of the folder may be empty. Then the paths in it have no slash at their beginning.
        texts += [f"/{normal_path}"]
    if rest[0] == Hole("below"):
        folders = {spell(text).rstrip("/") for text in start}
        # Below the present folder, the paths in normal form have no slash at their beginning.
        if (
            "." in folders
            and not normal_path.startswith("/")
            and any(_spans(rest, f"/{text}", path=True) for text in texts)
        ):
            return True
        heads = list(folders)
    else:
        heads = []
        for text in start:
            folder, slash, name = text.rpartition("/")
            inside = spell(f"{folder}/") if slash else "."
            heads.append(name if inside == "." else f"{inside.rstrip('/')}/{name}")
    return any(_spans([tuple(heads), *rest], text, path=True) for text in texts)


def _spans(options: Sequence[_Option], text: str, *, path: bool = False) -> bool:
    """Whether a text consists of these parts, one after the other. In a path, parts that meet at two slashes have only one."""
    if len(text) > MAX_TEXT and not all(isinstance(option, tuple) for option in options):
        first, last = options[0], options[-1]
        begins = not isinstance(first, tuple) or text.startswith(first)
        return begins and (not isinstance(last, tuple) or text.endswith(last))
    return len(text) in _after(options, {0}, text, path=path)


def _after(options: Sequence[_Option], places: set[int], text: str, *, path: bool = False) -> set[int]:
    """The places in a text at which these parts can end, if they begin at one of `places`."""
    for option in options:
        if isinstance(option, Hole):
            places = _after_hole(option, places, text, path)
        elif not isinstance(option, tuple):
            places = option(places, text)
        else:
            starts = [*places, *(p - 1 for p in places if path and text[p - 1 : p] == "/")]
            if len(starts) * len(option) > MAX_COMPARED:
                # Comparing them all would take seconds.
                places = set(range(min(starts), len(text) + 1))
                continue
            places = {p + len(known) for known in option for p in starts if text.startswith(known, p)}
        if not places:
            break
    return places


def _after_hole(hole: Hole, places: set[int], text: str, path: bool) -> set[int]:
    """The places at which a hole can end that begins at one of `places`."""
    if hole.kind in _RUNS:
        run = _RUNS[hole.kind]
        return _ranges(places, lambda p, _: match.end() if (match := run.match(text, p)) else p)
    if hole.kind in ("below", "inside"):
        return _ranges(places, lambda p, _: _end_of_path(text, p, hole.kind == "inside", path))
    if hole.kind == "part" and hole.of:
        pieces = (_ranges(places, partial(_end_of_piece, text, whole), again=True) for whole in hole.of)
        return set().union(*pieces)
    return set(range(min(places), len(text) + 1))


def _ranges(places: set[int], end_of: Callable[[int, int], int], again: bool = False) -> set[int]:
    """All places from each place to its end. `end_of` gets the place and the greatest end so far.

    No later place has a lesser end. Unless `again` is true, a place inside of an earlier range has the end of that range.
    """
    covered: set[int] = set()
    end = -1
    for place in sorted(places):
        if place > end or again:
            before, end = end, max(end, end_of(place, max(place, end)))
            covered.update(range(max(place, before + 1), end + 1))
    return covered


def _end_of_path(text: str, start: int, is_relative: bool, is_normal: bool) -> int:
    """The end of the longest path below a folder whose own path ends at `start`.

    It begins with a slash, unless it is relative, or the folder's path ends with one or is empty and not in normal form.
    """
    has_slash = text.startswith("/", start)
    before = text[start - 1] if start else "" if is_normal else "/"
    can_begin = not has_slash if is_relative else has_slash or before == "/"
    if not can_begin or (not has_slash and _UP_FIRST.match(text, start)):
        return start
    up = _UP.search(text, start)
    return up.end() - 1 if up else len(text)


def _end_of_piece(text: str, whole: Any, start: int, end: int) -> int:
    """The end of the longest piece of `whole` that begins at `start`. The piece up to `end` is one."""
    last = min(len(text), start + len(whole))
    if text[start:last] in whole:
        return last
    # Each beginning of a piece is a piece, too, so the end is found by halves.
    while last - end > 1:
        middle = (end + last) // 2
        end, last = (middle, last) if text[start:middle] in whole else (end, middle)
    return end
