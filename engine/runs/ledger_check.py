"""Compare a run's journal with the ledger before the run is resumed.

Both files record the decision on each step and its result, and they are written separately. An attacker can forge a journal with a
valid hash chain. The ledger then reveals the forgery: effects without a decision, different results, or missing steps. The ledger
may lack the end of a step, because an entry could not be written or old entries were compacted. In that case the journal is
trusted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import hash_of_output

if TYPE_CHECKING:
    from albert_tools.engine.call.journal import RunJournal, Step
    from albert_tools.engine.model.protocols import Ledger


@dataclass(slots=True)
class _Recorded:
    """The ledger's entries about one call: how often the call began, and its ends (``result`` or ``denied``)."""

    begun: int = 0
    ends: list[Mapping[str, Any]] = field(default_factory=list)


async def check_against_ledger(journal: RunJournal, ledger: Ledger, created: str, single: bool) -> None:
    """Compare the steps of a journal with the ledger. A read that is not in the ledger is dropped, so the run makes it again.

    Args:
        journal: The journal.
        ledger: The ledger.
        created: When the run was created, in ISO format. Older entries are not read.
        single: Whether the run executes a primitive. Its only step is then the request itself.

    Raises:
        Failure: `damaged` with the name of the first step that differs; `io_error`.
    """
    recorded, folded = await asyncio.to_thread(_entries_of, ledger, journal.id, created)
    for name, step in journal.steps():
        place = "" if single else name
        if place not in recorded:
            if folded or not step.ended:
                continue
            if step.changes:
                raise _differs(journal.id, name, f"{step.tool} was never decided on")
            journal.forget(name)
        elif step.ended and not _same_end(step, recorded[place]):
            raise _differs(journal.id, name, f"{step.tool} ended with another result")
    known = {name for name, _ in journal.steps()}
    for place, entries in recorded.items():
        name = "0" if single else place
        if name and name not in known and _had_effect(entries):
            raise _differs(journal.id, name, "it had an effect, and the journal doesn't have it")


def _entries_of(ledger: Ledger, run: str, created: str) -> tuple[dict[str, _Recorded], bool]:
    """The ledger's entries about a run's calls by step ("" is the request itself), and whether old entries may be missing."""
    found: dict[str, _Recorded] = {}
    folded = False
    within = f"{run}:"
    for entry in ledger.entries({"call", "result", "denied", "fold"}, datetime.fromisoformat(created)):
        if entry.kind == "fold":
            folded = folded or str(entry.data.get("until", "")) >= created
            continue
        call = str(entry.data.get("call"))
        if call == run or call.startswith(within):
            recorded = found.setdefault(call[len(within) :], _Recorded())
            if entry.kind == "call":
                recorded.begun += 1
            else:
                recorded.ends.append(entry.data)
    return found, folded


def _had_effect(recorded: _Recorded) -> bool:
    return any(effect["kind"] != "read" for end in recorded.ends for effect in end.get("effects", ()))


def _same_end(step: Step, recorded: _Recorded) -> bool:
    """Whether the ledger contains this end of the step, or lacks one of the step's ends."""
    if step.failure is not None:
        # A denial changes nothing. A step that had begun can be denied when it is tried again.
        same = step.failure.denied or any(end.get("code") == step.failure.code for end in recorded.ends)
    else:
        value = hash_of_output(step.value)
        same = any("code" not in end and end.get("result_hash") == value for end in recorded.ends)
    return same or sum("ok" in end for end in recorded.ends) < recorded.begun


def _differs(run: str, step: str, problem: str) -> Failure:
    return Failure(
        "damaged",
        f"the journal of run {run} differs from the ledger at step {step[:100]}: {problem}",
        hint="one of them was changed, so the run can't be resumed: check `albert ledger verify`, and run the tool again",
        details={"run": run, "step": step},
    )
