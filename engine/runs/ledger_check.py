"""A run's journal, held against the ledger before it is gone on with.

Both say of each step how it was decided and how it ended, and they are written apart. A journal that was written anew by hand can
be chained again; that it tells of effects which nobody decided on, of other results than were recorded, or of less than was done,
the ledger shows. What the ledger doesn't have (an entry couldn't be written, or old ones were folded) the journal is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import hash_of_output

if TYPE_CHECKING:
    from albert_tools.engine.model.protocols import Ledger
    from albert_tools.engine.runs.journal import Step


@dataclass(slots=True)
class OfCall:
    """What the ledger has of one call: how often it was begun, and how it ended each time (``result`` or ``denied``)."""

    begun: int = 0
    ends: list[Mapping[str, Any]] = field(default_factory=list)


#: By step; "" is the request itself.
Recorded = dict[str, OfCall]


def recorded(ledger: Ledger, run: str, created: str) -> tuple[Recorded, bool]:
    """What the ledger has of a run's calls; and whether some of it may have been folded.

    Raises:
        Failure: `damaged`, `io_error`.
    """
    found: Recorded = {}
    folded = False
    within = f"{run}:"
    since = datetime.fromisoformat(created)
    for entry in ledger.entries({"call", "result", "denied", "fold"}, since):
        if entry.kind == "fold":
            folded = folded or str(entry.data.get("until", "")) >= created
            continue
        call = str(entry.data.get("call"))
        if call == run or call.startswith(within):
            known = found.setdefault(call[len(within) :], OfCall())
            if entry.kind == "call":
                known.begun += 1
            else:
                known.ends.append(entry.data)
    return found, folded


def hold(run: str, known: dict[str, Step], recorded: Recorded, folded: bool, single: bool) -> None:
    """Compare the steps of a journal, which are `known`, with the ledger; a read that the ledger knows nothing of is forgotten.

    `single` is the run of a primitive: its one step is the request itself.

    Raises:
        Failure: `damaged`, naming the first step that differs.
    """
    for name, step in list(known.items()):
        place = "" if single else name
        if place not in recorded:
            if folded or not step.ended:
                continue
            if step.changes:
                raise _differs(run, name, f"{step.tool} was never decided on")
            del known[name]
        elif step.ended and not _accounted(step, recorded[place]):
            raise _differs(run, name, f"{step.tool} ended otherwise")
    for place, of in recorded.items():
        name = "0" if single else place
        if name and name not in known and any(e["kind"] != "read" for end in of.ends for e in end.get("effects", ())):
            raise _differs(run, name, "something was done that the journal doesn't have")


def _accounted(step: Step, of: OfCall) -> bool:
    """Whether it ended as the ledger has it of one of the times that it was made, or in a time of which the end is missing."""
    if step.failure is not None:
        # To be denied changes nothing, and is no end of what was begun.
        same = step.failure.denied or any(end.get("code") == step.failure.code for end in of.ends)
    else:
        value = hash_of_output(step.value)
        same = any("code" not in end and end.get("result_hash") == value for end in of.ends)
    return same or sum("ok" in end for end in of.ends) < of.begun


def _differs(run: str, step: str, why: str) -> Failure:
    return Failure(
        "damaged",
        f"the record of run {run} is not what the ledger has: step {step[:100]}: {why}",
        hint="somebody has changed one of them; it can't be gone on with: see `albert ledger verify`, and run the tool anew",
        details={"run": run, "step": step},
    )
