"""The call begins: in one transaction, it is charged, its approval is used up, and its decision is recorded.

If the call may change something, all of this is on the disk before the call is executed.
"""

from __future__ import annotations

from albert_tools.engine.call import ledger
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline.allowance import demand_allowance
from albert_tools.engine.pipeline.approval import rules_unchanged
from albert_tools.engine.pipeline.session import demand_lease
from albert_tools.engine.runs.lifecycle import begin_run
from albert_tools.engine.runs.recovery import state_before


async def begin(call: Call, run: Run) -> bool:
    """Begin an authorized call. Returns whether its decision was recorded.

    A primitive that only reads and is charged to nobody needs no transaction: its decision is recorded at its end.

    Raises:
        Failure: `rate_limited`, `budget_exceeded`; `permission_denied` if another call used the approval first, or if the rules
            have changed since a person was asked; `governance_unavailable`.
    """
    changes = call.target.changes
    is_charged = call.windows or run.session.id or call.approval is not None
    if not (changes or is_charged or run.repeat or call.target.version):
        return False
    state = await state_before(call, run) if changes and (run.journal.id or run.repeat) else None
    journal = run.journal
    try:
        with run.service.ledger.transaction():
            charge = _charge(call, run) if is_charged else {}
            begin_run(call, run)
            _write_journal(call, run, state)
            n = ledger.decided(call, run, charge)
    except BaseException as error:
        # If nothing was committed, the run has no journal yet.
        run.journal = journal
        if isinstance(error, Failure) and error.code in ("io_error", "damaged"):
            raise ledger.not_recorded(error) from None
        raise
    if changes:
        await ledger.durable(run, n)
        if call.approval is not None and not rules_unchanged(call, run):
            raise Failure(
                "permission_denied",
                f"the rules or the mode have changed since a person was asked about {call.name}",
                hint="call again; the new rules then decide",
                rule="approval",
                tool=call.name,
            )
    return True


def _charge(call: Call, run: Run) -> dict[str, Json]:
    """Check session, rate limits and budget once more, and use up the approval. Returns the charges, which the entry contains."""
    # The lease may have expired while a person decided, because a question only stops the clock of the call.
    demand_lease(call, run)
    demand_allowance(call, run)
    service, approval = run.service, call.approval
    if approval is not None and service.approvals is not None:
        service.approvals.use(approval, call.id)
    if call.begun_before is not None:
        return {}
    charge: dict[str, Json] = {"used": {"calls": 1}} if run.session.id else {}
    if call.windows and service.rate_limits is not None:
        charge |= service.rate_limits.use(call.windows, run.session.lineage())
    return charge


def _write_journal(call: Call, run: Run, state: str | None) -> None:
    """Add to the journal that a program begins, or a step that may change something. The decision's entry writes the journal."""
    definition, approval = call.target.definition, call.approval
    is_program = call.target.version is not None or not call.depth
    if is_program and (call.begun_before is None or approval is not None):
        run.journal.enter(
            call.step, definition, call.arguments, call.mode, approval.id if approval is not None else None
        )
    if call.target.changes:
        run.journal.begin_step(call.place, definition, call.given if call.depth else call.arguments, state)
