"""The call begins: it is charged, its approval is used up, and its decision is recorded.

All of this is one transaction. If the call may change something, it is on the disk before the call is executed. A call that changes
nothing, and draws on nothing that other requests could use up meanwhile (approvals, budgets, a rate limit or quota that is nearly
used up), needs no transaction of its own: its decision is pushed (`entries`).
"""

from __future__ import annotations

from contextlib import suppress

from albert_tools.engine.call import ledger
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline.allowance import demand_allowance
from albert_tools.engine.pipeline.approval import rules_unchanged
from albert_tools.engine.runs.lifecycle import begin_run
from albert_tools.engine.runs.recovery import state_before


async def begin(call: Call, run: Run) -> None:
    """Begin an authorized call.

    Raises:
        Failure: `rate_limited`, `budget_exceeded`; `permission_denied` if another call used the approval first, or if the rules
            have changed since a person was asked; `governance_unavailable`.
    """
    changes = call.target.changes
    is_charged = bool(call.windows) or call.approval is not None or run.session.id is not None
    state = await state_before(call, run) if changes and (run.journal.id or run.repeat) else None
    journal = run.journal

    def decide(has_room: bool = False) -> None:
        charge = _charge(call, run, has_room) if is_charged else {}
        begin_run(call, run)
        _write_journal(call, run, state)
        ledger.decided(call, run, charge)

    try:
        if changes or run.repeat or run.service.observer is not None or _draws(call, run):
            await run.entries.together((run.session.id, call.name), decide)
        else:
            decide(has_room=True)
            if is_charged:
                # However long it takes, it is counted soon, and other processes see it.
                run.entries.keep_time()
    except Exception as error:
        if run.journal is not journal:
            # Nothing was committed, so the run has no journal yet.
            with suppress(Failure):
                run.journal.close()
            run.journal = journal
        if isinstance(error, Failure) and error.code in ("io_error", "damaged"):
            raise ledger.not_recorded(error) from None
        raise
    if changes:
        await ledger.durable(run)
        if call.approval is not None and not rules_unchanged(call, run):
            raise Failure(
                "permission_denied",
                f"the rules or the mode have changed since a person was asked about {call.name}",
                hint="call again; the new rules then decide",
                rule="approval",
                tool=call.name,
            )


def _draws(call: Call, run: Run) -> bool:
    """Whether the call needs something that other requests could use up before its entry is written."""
    if call.approval is not None or run.session.is_limited:
        return True
    if not call.windows:
        return False
    # The requests of a session at the same time are few. Those of the owner, actions, and the calls of a program may be many.
    may_be_many = run.session.id is None or bool(call.depth) or run.options.action is not None
    return may_be_many or run.service.record.rate_limits.is_nearly_used(call.windows, run.session.lineage())


def _charge(call: Call, run: Run, has_room: bool) -> dict[str, Json]:
    """Check session, rate limits and budget once more, and use up the approval. Returns the charges, which the entry contains."""
    # The lease may have expired while a person decided, because a question only stops the clock of the call.
    demand_allowance(call, run, has_room)
    service, approval = run.service, call.approval
    if approval is not None:
        service.record.approvals.use(approval, call.id)
    if call.begun_before is not None:
        return {}
    charge: dict[str, Json] = {"used": {"calls": 1}} if run.session.id else {}
    if call.windows:
        charge |= service.record.rate_limits.use(call.windows, run.session.lineage())
    return charge


def _write_journal(call: Call, run: Run, state: str | None) -> None:
    """Add to the journal that a program begins, or a step that may change something. The decision's entry writes the journal."""
    if run.journal.id is None:
        return
    definition, approval = call.target.definition, call.approval
    is_program = call.target.version is not None or not call.depth
    if is_program and (call.begun_before is None or approval is not None):
        run.journal.enter(
            call.step,
            definition,
            call.arguments,
            call.mode,
            approval.id if approval is not None else None,
            call.asks,
            run.seen_before if not call.depth else (),
        )
    if call.target.changes:
        run.journal.begin_step(call.place, definition, call.given if call.depth else call.arguments, state)
