"""Which old entries of the ledger are kept: those that decisions still depend on.

Calls, results, denials, repeats and large outputs are history and are dropped. Entries of sessions, questions, answers and modes
stay. What a session has used is added up into one entry. A question that is used or revoked is dropped, but only together with the
entry that began it: a used answer must not look unused because the entry that says so is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from albert_tools.engine.authority.idempotency import KEPT_SECONDS
from albert_tools.engine.model.record_types import Entry

#: Kinds of entries that no decision depends on.
HISTORY = frozenset({"call", "result", "denied", "handed", "repeated", "settled", "run"})
#: Days that entries are kept at least, because dedupe keys and rate limits look back that far.
MIN_DAYS = KEPT_SECONDS / 86400

Kept = tuple[str, str, Mapping[str, Any]]


def condensed(entries: Iterable[Entry]) -> Iterator[Kept]:
    """The entries that are kept, in order. All must be older than `MIN_DAYS`."""
    found = [entry for entry in entries if entry.kind not in HISTORY]
    over = _over(found)
    last = ""
    used: dict[str, dict[str, float]] = {}
    for entry in found:
        if entry.kind == "use":
            _add(used, entry.data)
            last = entry.at
        elif (entry.kind, entry.data.get(_NAMED_BY.get(entry.kind, ""))) not in over:
            yield entry.at, entry.kind, entry.data
            last = entry.at
    # They come last, because a session's own entry must come before what it has used.
    for session, amounts in used.items():
        yield last, "use", {"session": session, "used": amounts}


def _add(used: dict[str, dict[str, float]], data: Mapping[str, Any]) -> None:
    session = data.get("session")
    if session is None:
        return
    of = used.setdefault(session, {})
    for unit, amount in data.get("used", {}).items():
        of[unit] = of.get(unit, 0) + amount


#: The key of the data that identifies the question or the dedupe key of an entry, by kind.
_NAMED_BY = {
    **dict.fromkeys(("asked", "answered", "approval_used", "approval_revoked"), "approval"),
    "repeat": "key",
}


def _over(entries: Iterable[Entry]) -> set[tuple[str, Any]]:
    """The questions and dedupe keys that both begin and end in these entries, as (kind of entry, id)."""
    begun: set[tuple[str, Any]] = set()
    over: set[tuple[str, Any]] = set()
    for entry in entries:
        kind, data = entry.kind, entry.data
        if kind == "asked":
            begun.add(("approval", data["approval"]))
        elif kind in ("approval_used", "approval_revoked"):
            over.add(("approval", data["approval"]))
        elif kind == "repeat":
            if data["state"] == "begun":
                begun.add(("key", data["key"]))
            over.add(("key", data["key"]))
    return {(kind, which) for name, which in begun & over for kind, by in _NAMED_BY.items() if by == name}


def until(days: float) -> datetime:
    """The time before which entries may be dropped that are kept for `days`."""
    return datetime.now(UTC) - timedelta(days=max(days, MIN_DAYS))
