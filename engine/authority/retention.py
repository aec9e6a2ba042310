"""What is kept of old records: what still decides, and no more.

Calls and what came of them, denials, repeats and outputs handed over are history; after their time they go. What sessions,
questions, answers and modes are made of stays, for what a session has used and whom an answer is for counts for as long as they
last: entries that only add something up are added up, and what is over in every way is left out. What is over is left out only
together with its beginning: an answer that was used must not look unused because the entry that says so is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from albert_tools.engine.authority.idempotency import KEPT_SECONDS
from albert_tools.engine.model.record_types import Entry

#: History: what nothing is decided by.
HISTORY = frozenset({"call", "result", "denied", "handed", "repeated", "settled", "run"})
#: Days that records are kept at the least: keys and windows look back as far as this.
MIN_DAYS = KEPT_SECONDS / 86400

Kept = tuple[str, str, Mapping[str, Any]]


def condensed(entries: Iterable[Entry]) -> Iterator[Kept]:
    """The entries that are kept, in order. All are older than `MIN_DAYS`, so no window and no key looks back at them."""
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
    # A session's own entry is before what it has used.
    for session, amounts in used.items():
        yield last, "use", {"session": session, "used": amounts}


def _add(used: dict[str, dict[str, float]], data: Mapping[str, Any]) -> None:
    session = data.get("session")
    if session is None:
        return
    of = used.setdefault(session, {})
    for unit, amount in data.get("used", {}).items():
        of[unit] = of.get(unit, 0) + amount


#: What says which question, or which key, an entry is about.
_NAMED_BY = {
    **dict.fromkeys(("asked", "answered", "approval_used", "approval_revoked"), "approval"),
    "repeat": "key",
}


def _over(entries: Iterable[Entry]) -> set[tuple[str, Any]]:
    """The questions that are used or taken back, and the keys, that were begun here: kinds of entry with whose they are."""
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
    """The moment up to which records may go that are kept for so many days."""
    return datetime.now(UTC) - timedelta(days=max(days, MIN_DAYS))
