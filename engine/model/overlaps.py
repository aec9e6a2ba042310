"""The world outside as one object: which calls of a tool may show what others of its calls have changed.

Whatever a call is given, or has found, it may leave in a file or elsewhere on this machine, where a later call finds it. The flows
of the manifest don't show that. So each call that changes something feeds each call that shows something, unless it is certainly
made later (`Step`), or both name paths that are certainly apart. Two paths are apart if their constant beginnings differ, and
nothing in them can lead up. A command can reach everything; so can a call that names no path, or leaves it to its default. A link
gives a file a second name: the callers of `feeds` know whether there is one. What servers keep is not followed: what comes from
there is content from outside anyway.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection

from albert_tools.engine.model.batched_calls import batched_calls
from albert_tools.engine.model.manifest import Hole, Manifest, Part, PlannedCall, Step, Value, values_in, with_paths
from albert_tools.engine.model.manifest_match import PATH_USES

#: The most pairs of different paths that are compared. If there are more, all paths may be the same.
MAX_PAIRS = 40_000

_CHANGING = ("write", "delete", "execute")
#: The sources that show nothing of what calls have left: time and chance.
_APART = ("clock", "random")
#: The sources that show no time, unless the primitive declares one. What others say can contain the time.
_TIMELESS = ("", "file", "random")
_ANYWHERE: tuple[Part, ...] = (Hole("any"),)
#: Parts of a path that mean nothing or lead up: between two slashes, and at the ends of a constant, where a hole can be beside it.
_IDLE, _UNCLEAR = re.compile(r"/(?:\.?/)+"), re.compile(r"(?:^|/)\.{1,2}(?:/|$)")

_Path = tuple[Part, ...]


def changes(call: PlannedCall) -> bool:
    """Whether a call changes something on this machine that another call may show."""
    return not {"write", "delete"}.isdisjoint(call.uses.values()) or not set(call.effects).isdisjoint(_CHANGING)


def feeds(manifest: Manifest, by_links: bool = False) -> list[tuple[int, int]]:
    """Pairs of calls, by their indexes: the second may show what the first has changed.

    `by_links`: any name may be a link, so names don't tell files apart.
    """
    written = _paths(manifest, ("write", "delete"), changes)
    shown = _paths(manifest, PATH_USES, _shows)
    is_apart = not by_links and len(written) * len(shown) <= MAX_PAIRS
    met = {
        (writer, reader)
        for one, writers in written.items()
        for other, readers in shown.items()
        if not is_apart or _may_meet(one, other)
        for writer in writers
        for reader in readers
    }
    is_first = _first_of(manifest)
    return sorted((w, r) for w, r in met if w != r and not is_first(r, w))


def delays(manifest: Manifest) -> list[tuple[int, int]]:
    """Pairs of calls, by their indexes: the second may show how long the first has taken."""
    clocks = [i for i, call in enumerate(manifest.calls) if call.has_times or call.source not in _TIMELESS]
    is_first = _first_of(manifest)
    return [(i, clock) for clock in clocks for i in range(len(manifest.calls)) if i != clock and not is_first(clock, i)]


def _first_of(manifest: Manifest) -> Callable[[int, int], bool]:
    """The function that says whether one call is certainly made before another one, by their indexes."""
    # A batch's calls have the step in which it is started, and can be made at any time after that.
    later = frozenset[int]().union(*batched_calls(manifest).values())
    steps = [call.step for call in manifest.calls]
    return lambda one, other: one not in later and is_before(steps[one], steps[other])


def is_before(one: Step, other: Step) -> bool:
    """Whether a call with the first step is certainly made before one with the second."""
    return next((a < b for a, b in zip(one, other, strict=False) if a != b), False)


def _shows(call: PlannedCall) -> bool:
    return call.source not in _APART and (changes(call) or "read" in {*call.effects, *call.uses.values()})


def _paths(manifest: Manifest, uses: Collection[str], fits: Callable[[PlannedCall], bool]) -> dict[_Path, list[int]]:
    """The calls that use each path."""
    by_path: dict[_Path, list[int]] = {}
    for i, call in enumerate(manifest.calls):
        if fits(call):
            for path in _paths_of(call, uses):
                by_path.setdefault(path, []).append(i)
    return by_path


def _paths_of(call: PlannedCall, uses: Collection[str]) -> set[_Path]:
    given = [call.arguments.get(name) for name, use in call.uses.items() if use in uses]
    known = [value for value in given if value is not None]
    if "execute" in call.effects or not known or len(known) < len(given):
        return {_ANYWHERE}
    return {path for value in known for inner in values_in(value) for path in _texts(inner)}


def _texts(value: Value) -> list[_Path]:
    # Null is the default.
    is_unknown = value.open or None in value.alternatives
    return [*(a for a in value.alternatives if isinstance(a, tuple)), *([_ANYWHERE] if is_unknown else [])]


def _may_meet(written: _Path, shown: _Path) -> bool:
    """Whether two paths may be the same, or one below the other."""
    one, other = _joined(written), _joined(shown)
    # An absolute path can be in the workspace, and a folder that the rules open can have several names.
    if any(_constant(path).startswith("/") for path in (one, other)):
        return True
    while one and other and one[0] == other[0] and _is_same_each_time(one[0]):
        one, other = one[1:], other[1:]
    start, beginning = _constant(one), _constant(other)
    # A common beginning may end with a slash, and then another slash means nothing.
    if any(_is_unclear(part) for part in (*one, *other)) or start.startswith("/") != beginning.startswith("/"):
        return True
    return _leads_to(start, len(one) > 1, beginning) or _leads_to(beginning, len(other) > 1, start)


def _leads_to(start: str, is_open: bool, other: str) -> bool:
    """Whether a path with a constant beginning can be the other one, or a folder above it."""
    return other.startswith(start) if is_open or not start else f"{other}/".startswith(f"{start.rstrip('/')}/")


def _joined(path: _Path) -> _Path:
    """The path with its constants joined and in normal form. The workspace's root is the empty path.

    File systems may ignore the case and the form of letters, so both are removed.
    """
    parts: list[Part] = []
    for part in with_paths(path):
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    normal_parts = [
        _IDLE.sub("/", unicodedata.normalize("NFKC", p).casefold()) if isinstance(p, str) else p for p in parts
    ]
    if normal_parts and isinstance(normal_parts[0], str):
        normal_parts[0] = normal_parts[0].removeprefix("./")
    if normal_parts and isinstance(normal_parts[-1], str):
        normal_parts[-1] = "" if normal_parts == ["."] else normal_parts[-1].removesuffix("/.")
    return tuple(part for part in normal_parts if part != "")


def _is_same_each_time(part: Part) -> bool:
    return isinstance(part, str) or (part.kind == "parameter" and "*" not in part.path and "~" not in part.path)


def _is_unclear(part: Part) -> bool:
    """Whether a part can hold ``..`` or an absolute path, or can be left out together with what a hole holds."""
    if isinstance(part, str):
        return _UNCLEAR.search(part) is not None
    return part.kind not in ("number", "word", "below", "inside")


def _constant(path: _Path) -> str:
    return path[0] if path and isinstance(path[0], str) else ""
