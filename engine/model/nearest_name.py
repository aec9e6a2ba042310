"""Say the nearest name: an agent that sees it mends its text in one turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from albert_tools.engine.model.failure import Failure

#: Names that one is likened to.
MAX_CANDIDATES = 300


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that `name` most likely means, or None when none is close (`cutoff`: 1 is equal)."""
    # Wanted only where something is wrong, and slow to load.
    from difflib import get_close_matches

    candidates = list(known)
    folded = {c.casefold().replace("_", ""): c for c in reversed(candidates)}
    same = folded.get(name.casefold().replace("_", ""))
    if same is not None:
        return same
    # A source can bring thousands of names; likening two of them is slow.
    candidates = [c for c in candidates if abs(len(c) - len(name)) <= 3][:MAX_CANDIDATES]
    close = get_close_matches(name, candidates, n=1, cutoff=cutoff)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` or nothing."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""


def unknown_settings(given: Iterable[object], known: Collection[str]) -> list[tuple[str, str]]:
    """Each of the owner's settings that there isn't, with what is wrong with it."""
    strange = [str(name) for name in given if name not in known]
    return [(name, f"there is no such setting{did_you_mean(name, known)}") for name in strange]


def only_one(beginning: str, ids: Iterable[str], what: str, command: str) -> str:
    """The id that is meant by itself or by its beginning; `what` is what it names, `command` lists all there are.

    Raises:
        Failure: `not_found`; `invalid_arguments` where several begin so.
    """
    known = list(ids)
    found = [beginning] if beginning in known else [i for i in known if beginning and i.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    raise Failure(
        "invalid_arguments" if found else "not_found",
        f"{f'several {what}s begin' if found else f'no {what} begins'} with {beginning[:100]!r}",
        hint=f"`{command}` says which there are",
    )
