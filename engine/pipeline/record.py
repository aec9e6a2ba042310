"""Record how a call ended, or why it was not executed: in the ledger, in the journal of its run, and for observers.

The transaction of the entry also writes the step in the journal. The result of a step that may have changed something is on the
disk before the program gets it.
"""

from __future__ import annotations

from contextlib import suppress

from albert_tools.engine.call import ledger
from albert_tools.engine.call.context import UNJUDGED, Call, Repeated, Run
from albert_tools.engine.call.target import UNKNOWN
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.error_codes import ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import UNJUDGED_POLICY, denial_policy
from albert_tools.engine.pipeline import observers
from albert_tools.engine.pipeline.suspension import denied_for_now, suspended_by


async def record(
    call: Call, run: Run, outcome: Failure | Json, seconds: float, notice: observers.Notice
) -> Failure | Json:
    """Record the output of an executed call, or its failure. Returns what its caller gets.

    Raises:
        Failure: `unknown_outcome` if the journal can't be written.
    """
    answer = outcome
    if isinstance(outcome, Failure) and outcome.code == "sandbox_unavailable" and denied_for_now(outcome, call, run):
        answer = suspended_by(outcome, run.id)
    is_end = _end_step(call, run, answer)
    saw = ledger.ended(call, run, outcome, seconds)
    observers.ended(call, run, notice, outcome, seconds)
    is_written = is_end and call.target.changes
    if saw or is_written:
        # The session's next call is judged by what the session has seen.
        with suppress(Failure):
            await run.entries.aflush(run.session.id)
    if is_written:
        await run.journal.sync()
    return answer


def refuse(call: Call, run: Run, failure: Failure, seconds: float) -> Failure:
    """Record a call that is not executed. Returns the failure for its caller."""
    if failure.code == "suspended" and not call.depth:
        failure = ledger.waits(call, run) or failure
    notice = observers.started(call, run, failure)
    if not call.depth:
        run.report.decision = _decision(call, failure)
    answer = suspended_by(failure, run.id) if denied_for_now(failure, call, run) else failure
    if call.target is not UNKNOWN:
        _end_step(call, run, answer)
    if failure.code != "suspended":
        ledger.denied(call, run, failure)
    observers.ended(call, run, notice, failure, seconds, blocked=True)
    return answer


def repeated(call: Call, run: Run, earlier: Repeated, seconds: float) -> None:
    """Record that the request got the result of an earlier run."""
    result = earlier.result
    notice = observers.started(call, run)
    ledger.repeated(call, run, result)
    observers.ended(call, run, notice, result.error or result.output, seconds)


def _end_step(call: Call, run: Run, outcome: Failure | Json) -> bool:
    """Append the end of a step to the journal, unless it is a failure that ends the run. Returns whether it was appended.

    Raises:
        Failure: See `RunJournal.end_step`.
    """
    if not call.is_step or (isinstance(outcome, Failure) and outcome.code in ENDING):
        return False
    report, journal = call.report, run.journal
    # The arguments of a refused request, which has no journal, may be anything.
    if journal.id is not None:
        log = "".join(report.printed)
        journal.end_step(call.place, call.target.definition, call.given, outcome, report.effects, report.began, log)
    return True


def _decision(call: Call, failure: Failure) -> dict[str, Json]:
    """The decision about a refused request: the denial, or what the rules said."""
    if failure.denied:
        return denial_policy(failure)
    if call.decision is UNJUDGED:
        return UNJUDGED_POLICY.copy()
    return {**call.decision.as_dict(), "allowed": False, "message": call.decision.message or failure.message}
