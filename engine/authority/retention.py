"""Decides which old entries of the ledger are retained: the entries that later decisions depend on.

Calls, results, denials, repeated requests and large outputs are history; they are dropped. Entries of sessions, questions,
answers and modes are retained. The usage of a session is added up in one entry. A used or revoked question is dropped together
with its answer and its use. If only the entry of the use were dropped, a used answer would look unused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from albert_tools.engine.authority.idempotency import KEPT_SECONDS
from albert_tools.engine.model.record_types import Entry

#: The kinds of entries that no decision depends on.
HISTORY = frozenset({"call", "result", "denied", "handed", "repeated", "settled", "run"})
#: The least number of days for which entries are retained. Dedupe keys and rate limits need the entries of this time.
MIN_DAYS = KEPT_SECONDS / 86400

Kept = tuple[str, str, Mapping[str, Any]]


def condensed(entries: Iterable[Entry]) -> Iterator[Kept]:
    """The retained entries, in order. All `entries` must be older than `MIN_DAYS`."""
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
    # The usage entries are last, because the entry of a session must precede its usage.
    for session, amounts in used.items():
        yield last, "use", {"session": session, "used": amounts}


def _add(used: dict[str, dict[str, float]], data: Mapping[str, Any]) -> None:
    session = data.get("session")
    if session is None:
        return
    of = used.setdefault(session, {})
    for unit, amount in data.get("used", {}).items():
        of[unit] = of.get(unit, 0) + amount


#: For each kind of entry, the key in its data that identifies the question or the dedupe key.
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
    """The cutoff time for dropping entries, if entries are retained for `days`."""
    return datetime.now(UTC) - timedelta(days=max(days, MIN_DAYS))
