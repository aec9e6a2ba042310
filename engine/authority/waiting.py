"""What waits for a person: open questions and pending versions, in one order.

The order is fair, so that no session hides what others wait for: first one item of each session, then a second one of each, and so
on. Of one session, the questions come before the versions, and the older before the newer. A session and all sessions within it
have one place together, and the owner has one.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from albert_tools.engine.authority.approvals import Approval, Approvals
from albert_tools.engine.authority.reviews import Reviews, VersionState


class Waiting(Struct, frozen=True):
    """A question, or a version about which nobody has decided. `session` is the top of its session, and empty for the owner."""

    session: str
    item: Approval | VersionState


def waiting(approvals: Approvals, reviews: Reviews) -> list[Waiting]:
    """All that waits, in the fair order. Raises Failure `io_error`, `damaged`."""
    items: list[tuple[str, Approval | VersionState]] = [(a.session, a) for a in approvals.queue(("open",))]
    items += [(v.by, v) for v in sorted(reviews.queue(), key=lambda state: state.time)]
    tops = approvals.tops(session for session, _ in items)
    ranks: Counter[str] = Counter()
    ranked = []
    for session, item in items:
        top = tops[session]
        ranked.append((ranks[top], Waiting(top, item)))
        ranks[top] += 1
    return [entry for _, entry in sorted(ranked, key=lambda place: place[0])]
