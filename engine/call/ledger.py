"""The ledger entries of one request.

A call has an entry ``call`` with the decision and the charges. If the call may change something, the entry is on the disk before
the call is executed, so every effect has one. If the entry is not written yet when the call ends, the outcome is added to it;
otherwise the outcome has an entry ``result``. If ``call`` can't be written, the caller gets a denial. `entries` says when entries
are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from albert_tools.engine.authority.rate_limit import SESSION
from albert_tools.engine.call.budget import seconds_used
from albert_tools.engine.call.seen import seen_by_session
from albert_tools.engine.model.error_codes import ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import QUOTA
from albert_tools.engine.model.redaction import of_refused, recorded, redacted, redacted_text
from albert_tools.engine.model.result import hash_of_output

if TYPE_CHECKING:
    from albert_tools.engine.call.context import Call, Queued, Run
    from albert_tools.engine.model.definition import Json
    from albert_tools.engine.model.result import ToolInvocation, ToolResult

#: The most effects of one call that its entry lists.
MAX_EFFECTS = 100
#: The most characters of an agent's reason that are recorded.
MAX_REASON = 1000


def reason_of(invocation: ToolInvocation) -> str:
    """The agent's reason for the call, redacted and shortened."""
    reason = invocation.reason
    return redacted_text(reason, MAX_REASON) if isinstance(reason, str) else ""


def decided(call: Call, run: Run, charge: Mapping[str, Json]) -> None:
    """Push ``call`` with the charges, before the call is executed."""
    call.report.entry = run.entries.push("call", {**_decision(call, run), **charge})


def write(run: Run) -> None:
    """Write all entries that were pushed, because something is about to leave the service.

    Raises:
        Failure: `governance_unavailable`.
    """
    try:
        run.entries.flush()
    except Failure as failure:
        raise not_recorded(failure) from None


async def write_results(run: Run) -> None:
    """As `write`, at the end of a request, together with other requests. What can't be written now is dropped.

    If only results can't be written, their effects have happened, so the caller gets them; the next call is denied.

    Raises:
        Failure: `governance_unavailable`.
    """
    try:
        await run.entries.aflush(run.session.id)
    except Failure as failure:
        if run.entries.drop():
            raise not_recorded(failure) from None


async def durable(run: Run) -> None:
    """Wait until all entries that were written are on the disk.

    Raises:
        Failure: `governance_unavailable`.
    """
    try:
        await run.service.ledger.adurable(run.entries.last)
    except Failure as failure:
        raise not_recorded(failure) from None


def denied(call: Call, run: Run, failure: Failure) -> None:
    """Push ``denied``. The call is not executed, because it is refused, invalid, or names an unknown tool.

    Of a session that may store nothing more, or that has ended, the ledger has one refusal a minute.
    """
    if _is_refused_lately(run, failure):
        return
    arguments, by_hash = call.given, call.target.definition.by_hash
    data: dict[str, Json] = {
        "call": call.id,
        "tool": redacted_text(call.name, 200),
        "arguments": of_refused(recorded(arguments, by_hash)) if isinstance(arguments, Mapping) else None,
        "code": failure.code,
        "rule_id": failure.rule,
        **({"rationale_code": failure.rationale} if failure.denied else {}),
        "message": redacted_text(failure.message),
        **_caller(call, run),
        **_time_used(call, run),
    }
    run.entries.push("denied", data)


def _is_refused_lately(run: Run, failure: Failure) -> bool:
    """Whether to leave out the entry of a refusal: no quota can limit such entries, and one was written in the last minute."""
    token = run.invocation.session
    if run.session.id is not None:
        return failure.rule == QUOTA and run.session.refused_lately()
    if token is None:
        return False
    # Anybody can make up tokens, so all unknown ones count as one. The hash keeps the token itself out of memory.
    return run.service.record.sessions.refused_lately(
        failure.rule if failure.rule == "session.unknown" else hash(str(token))
    )


def ended(call: Call, run: Run, outcome: Failure | Json, seconds: float) -> bool:
    """Add the outcome of an executed call to its entry, or push ``result``. Returns whether its session has seen something."""
    data = {**_outcome(call, outcome, seconds), **_time_used(call, run), **_failing(call, run, outcome)}
    if run.session.id is not None and not call.depth and run.options.action is None and run.report.shown is outcome:
        # Only part of a large output is shown, and what a failure says is no result.
        run.service.provenance.saw(run.session.id, call.id, outcome)
    if saw := seen_by_session(call, run, outcome):
        data |= {"session": run.session.id, "saw": saw}
    entry = call.report.entry
    if entry is not None and not entry.is_written:
        used = {**entry.data.get("used", {}), **data.get("used", {})}
        entry.data |= {**data, "used": used} if used else data
    else:
        run.entries.push("result", {"call": call.id, **data})
    return bool(saw)


def waits(call: Call, run: Run) -> Failure | None:
    """Charge a request that waits for an answer or for a worker: its time, and the request, which is not counted again when it is
    resumed. Returns the failure if the session may make no more requests; nothing is charged then.

    The entry has the trace of the request: a second request about an open question writes no question, and an action has no run.
    """
    session = run.session
    if session.id is None:
        return None
    counts, windows = run.service.record.rate_limits, [window for window in call.windows if window[0] == SESSION]
    try:
        with run.service.ledger.transaction():
            data = {"call": call.id, "tool": call.name, **_caller(call, run), **_time_used(call, run)}
            if windows:
                counts.demand(windows, session.lineage(), call.name)
                data |= counts.use(windows, session.lineage())
            run.service.ledger.append("waits", data)
    except Failure as failure:
        # If the ledger can't be written, the next call is denied.
        return failure if failure.code == "rate_limited" else None
    return None


def repeated(call: Call, run: Run, result: ToolResult) -> None:
    """Push ``repeated``: the request got the result of an earlier run, `of`. Nothing was executed or charged."""
    data: dict[str, Json] = {
        "call": call.id,
        "tool": call.name,
        "of": result.run_id,
        "ok": result.error is None,
        **_caller(call, run),
    }
    if run.session.origin is not None:
        data["session"] = run.session.origin
    if result.error is not None:
        data["code"] = result.error.code
    else:
        data["result_hash"] = hash_of_output(result.output)
    run.entries.push("repeated", data)


def settled(call: Call, run: Run, outcome: str, problem: str | None) -> None:
    """Push ``settled``: the outcome of an interrupted call, as its primitive determined it."""
    more = {"problem": redacted_text(problem)} if problem else {}
    run.entries.push("settled", {"call": call.id, "tool": call.name, "outcome": outcome, **more})


def handed(run: Run, handle: str, size: int) -> None:
    """Push ``handed``: a large output is stored under a handle. The entry prevents its garbage collection."""
    run.entries.push("handed", {"call": run.id, "handle": handle, "size_bytes": size})


def changed(run: Run, state: str, **more: Json) -> None:
    """Push ``run``: the new state of a run. Empty values of `more` are left out."""
    tool = run.target.definition.name or str(run.invocation.tool)
    run.entries.push("run", {"run": run.id, "state": state, "tool": tool, **{k: v for k, v in more.items() if v}})


def queued(run: Run, queued: Queued) -> None:
    """Push ``queued``: the run waits for a worker."""
    data: dict[str, Json] = {
        "run": run.id,
        "tool": run.target.definition.name,
        "version": run.target.definition.version,
        "queue": queued.queue,
        "priority": queued.priority,
        "workspace": queued.workspace(run.service.root),
        "trace": run.trace,
    }
    run.entries.push("queued", data)


def _decision(call: Call, run: Run) -> dict[str, Json]:
    definition, decision = call.target.definition, call.decision
    facts: dict[str, Json] = {
        "call": call.id,
        "tool": definition.name,
        "version": definition.version,
        "arguments": recorded(call.arguments, definition.by_hash),
        "verdict": decision.verdict,
        "rule_id": decision.rule,
        "rationale_code": decision.rationale,
        "mode": call.mode,
        "rules": call.rules.governance.revision,
        **_caller(call, run),
    }
    more: list[tuple[str, Json]] = [("session", run.session.id), ("approval", _approval_of(call))]
    if not call.depth:
        more += [("run", run.journal.id), ("reason", reason_of(run.invocation)), ("source", run.source)]
        if run.session.id is not None and run.options.action is None:
            more += [("turn", redacted_text(run.invocation.turn or "", 200))]
            more += [("from", run.service.provenance.sources(run.session.id, call.arguments))]
    for name, value in more:
        if value:
            facts[name] = value
    return facts


def _caller(call: Call, run: Run) -> dict[str, Json]:
    """The id of the caller's call; or for a call from outside, the caller's own identifier, and the trace."""
    if call.parent:
        return {"parent": call.parent}
    given = run.invocation.request_id
    named = {} if given is None else {"request_id": redacted_text(str(given), 200)}
    return {**named, "trace": run.trace}


def _outcome(call: Call, outcome: Failure | Json, seconds: float) -> dict[str, Json]:
    effects = call.report.effects
    data: dict[str, Json] = {"ok": not isinstance(outcome, Failure), "ms": round(seconds * 1000, 3)}
    if isinstance(outcome, Failure):
        data |= {"code": outcome.code, "message": redacted_text(outcome.message)}
    else:
        data["result_hash"] = hash_of_output(outcome)
    if effects:
        data["effects"] = [redacted(e.as_dict()) for e in effects[:MAX_EFFECTS]]
    if len(effects) > MAX_EFFECTS:
        data["more_effects"] = len(effects) - MAX_EFFECTS
    return data


def _time_used(call: Call, run: Run) -> dict[str, Json]:
    """The charge for the time of a request, at its end."""
    if call.depth or run.session.id is None:
        return {}
    return {"session": run.session.id, "used": {"wall_seconds": seconds_used(run)}}


def request_of(call: Call) -> Json:
    """The identity of a request, for failures of the same request in a row."""
    return [call.name, call.version, call.arguments]


def _failing(call: Call, run: Run, outcome: Failure | Json) -> dict[str, Json]:
    """Whether an executed request failed. A request that has not ended, or was denied, is neither a failure nor a success."""
    record, failed = run.service.projections, False
    if isinstance(outcome, Failure):
        failed = outcome.code not in ENDING and not (outcome.denied and call.target.primitive is not None)
        if not failed:
            return {}
    if call.depth or record is None or not (failed or run.after_failure):
        return {}
    return record.rate_limits.outcome(run.session.origin or "", request_of(call), failed=failed)


def _approval_of(call: Call) -> str | None:
    if call.approval is not None:
        return call.approval.id
    return call.begun_before.approval if call.begun_before is not None else None


def not_recorded(failure: Failure) -> Failure:
    """The denial of a call whose entry can't be written."""
    return Failure(
        "governance_unavailable",
        f"the call can't be recorded, so it is denied: {failure.message}",
        hint=failure.hint or "repair the folder of the record (`albert doctor` shows where it is)",
        rule="unrecorded",
    )
