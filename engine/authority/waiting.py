"""What waits for a person: open questions and pending versions, in one order.

The order is fair, so that no session hides what others wait for: first one item of each session, then a second one of each, and so
on. Of one session, the questions come before the versions, and the older before the newer. A session and all sessions within it
have one place together, and the owner has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TypeVar

from msgspec import Struct

from albert_tools.engine.authority.approvals import Approval, Approvals
from albert_tools.engine.authority.reviews import Reviews, VersionState

T = TypeVar("T")


class Waiting(Struct, frozen=True):
    """A question, or a version about which nobody has decided. `session` is the top of its session, and empty for the owner."""

    session: str
    item: Approval | VersionState


def waiting(approvals: Approvals, reviews: Reviews) -> list[Waiting]:
    """All that waits, in the fair order. Raises Failure `io_error`, `damaged`."""
    items: list[tuple[str, Approval | VersionState]] = [(a.session, a) for a in approvals.queue(("open",))]
    items += [(v.by, v) for v in sorted(reviews.queue(), key=lambda state: state.time)]
    tops = approvals.tops(session for session, _ in items)
    return in_turn([Waiting(tops[session], item) for session, item in items], lambda entry: entry.session)


def in_turn(items: Iterable[T], top: Callable[[T], str]) -> list[T]:
    """The items in the fair order: first one of each session, then a second one of each, and so on. `top` returns the id of the
    outermost session of an item."""
    ranks: Counter[str] = Counter()
    ranked = []
    for item in items:
        outermost = top(item)
        ranked.append((ranks[outermost], item))
        ranks[outermost] += 1
    return [item for _, item in sorted(ranked, key=itemgetter(0))]
