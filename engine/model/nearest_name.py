"""Suggest the most similar name, so that an agent can correct its text in one turn."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from albert_tools.engine.model.failure import Failure

_UNDERSCORES = re.compile("__+")
#: The most names that one name is compared with, and the most characters of each. The time of comparing two can grow with the third
#: power of their length.
MAX_CANDIDATES, MAX_COMPARED = 8, 60


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most similar to `name`. None if the similarity is below `cutoff`; 1 means equal."""
    # The module is slow to import and only needed for errors.
    from difflib import get_close_matches

    candidates = list(known)
    folded = {c.casefold().replace("_", ""): c for c in reversed(candidates)}
    same = folded.get(name.casefold().replace("_", ""))
    if same is not None:
        return same
    # A source can contain thousands of names, and comparing two is slow. Most misspellings keep the beginning and the end.
    candidates = [c for c in candidates if abs(len(c) - len(name)) <= 3 and len(c) <= MAX_COMPARED]
    candidates.sort(key=lambda c: -_begin_alike(c, name) - _begin_alike(c[::-1], name[::-1]))
    close = get_close_matches(name, candidates[:MAX_CANDIDATES], n=1, cutoff=cutoff)
    return close[0] if close else None


def _begin_alike(one: str, other: str) -> int:
    """How many letters two names have in common at the beginning."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is probably a misspelling of. A short name may differ in one letter, or in the order of two."""
    return nearest(name, known, 0.6 if len(name) <= 5 else 0.8)


#: Characters that are hard to tell apart in most fonts, in names with capitals and without.
_SAME_LOOK, _SAME_LOOK_FOLDED = str.maketrans("I10", "llo"), str.maketrans("i10", "llo")


def look_alike(name: str, known: Iterable[str]) -> str | None:
    """Another known name that differs from `name` only in case, in letters that look alike (``l I 1``, ``O 0``), or in repeated
    underscores."""
    plain, seen = _folded(name), _folded(name.translate(_SAME_LOOK))
    for other in known:
        if other != name and (_folded(other) == plain or _folded(other.translate(_SAME_LOOK)) == seen):
            return other
    return None


def look_key(name: str) -> str:
    """A key for finding candidates: names that look alike have the same key, and few others."""
    return _folded(name).translate(_SAME_LOOK_FOLDED)


def _folded(name: str) -> str:
    return _UNDERSCORES.sub("_", name).casefold()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"``, or an empty text."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""


def unknown_settings(given: Iterable[object], known: Collection[str]) -> list[tuple[str, str]]:
    """The names of settings that do not exist, each with a message."""
    unknown = [str(name) for name in given if name not in known]
    return [(name, f"there is no such setting{did_you_mean(name, known)}") for name in unknown]


def only_one(beginning: str, ids: Iterable[str], what: str, command: str) -> str:
    """The id that equals `beginning`, or the only id that begins with it.

    The message calls the ids `what` (for example "run") and mentions the `command` that lists them.

    Raises:
        Failure: `not_found`; `invalid_arguments` if several ids begin with `beginning`.
    """
    known = list(ids)
    matches = [beginning] if beginning in known else [i for i in known if beginning and i.startswith(beginning)]
    if len(matches) == 1:
        return matches[0]
    raise Failure(
        "invalid_arguments" if matches else "not_found",
        f"{f'several {what}s begin' if matches else f'no {what} begins'} with {beginning[:100]!r}",
        hint=f"`{command}` lists them",
    )
