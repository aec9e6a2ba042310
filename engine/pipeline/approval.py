"""The last stage: a person approves the call, if the rules ask."""

from __future__ import annotations

from albert_tools.engine.call.context import Call, JudgeAgain, Run
from albert_tools.engine.model.failure import Failure


async def approval(call: Call, run: Run) -> Call:
    """Add the approval of a call that the rules ask about. It is used up when the call begins.

    Raises:
        JudgeAgain: A person has just answered, or the rules or the mode have changed.
        Failure: `permission_denied` if nobody can be asked or the answer is no; `suspended` if the run waits for the answer.
    """
    asks = call.decision.verdict == "ask" and not _approved_before(call, run)
    if asks:
        from albert_tools.engine.pipeline.ask import find_approval

        call = await find_approval(call, run)
    # To parse a command or to examine an interrupted step takes time, too.
    if (asks or call.target.changes) and not rules_unchanged(call, run):
        raise JudgeAgain
    return call


def rules_unchanged(call: Call, run: Run) -> bool:
    """Whether the rules and the mode are still those that judged the call."""
    modes = run.service.modes
    modes.look()
    return modes.mode == call.mode and run.service.ruling().governance.revision == call.rules.governance.revision


def _approved_before(call: Call, run: Run) -> bool:
    """Whether a person has approved the same call, for the same reasons, before this run was interrupted. The journal names the
    answer in the record."""
    before = call.begun_before
    if before is None or call.target.changes or not before.approval or before.mode != call.mode:
        return False
    if not before.asks.issuperset(call.asks):
        return False
    try:
        known = run.service.record.approvals.get(before.approval)
    except Failure:
        return False
    return known.id == before.approval and known.tool == before.tool and known.state in ("used", "standing")
