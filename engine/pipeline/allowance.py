"""The stage of rate limits and budgets. With the lease, they are checked before a person is asked, and checked and charged when the
call begins."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.authority.rate_limit import SESSION
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.call.ledger import not_recorded, request_of
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline.session import demand_lease


async def allowance(call: Call, run: Run) -> Call:
    """Add the rate limits that count the call. A call that a resumed run had begun before is not charged again.

    Raises:
        Failure: `permission_denied`, `rate_limited`, `budget_exceeded`.
    """
    before = run.journal.entered(call.step, call.target.definition, call.arguments)
    windows = call.rules.authority.policy.numbers(call.target.definition).rate_limits if before is None else ()
    if not call.depth and before is None:
        windows += _demand_progress(call, run)
    call = replace(call, begun_before=before, windows=windows)
    if call.decision.verdict == "ask":
        # Nobody is asked about a call that can't be made.
        demand_allowance(call, run)
    return call


def _demand_progress(call: Call, run: Run) -> tuple[tuple[str, int], ...]:
    """Require that an agent doesn't repeat a request that only fails. Returns the window of its session, if it has one."""
    counts, loops = run.service.record.rate_limits, call.rules.governance.loops
    try:
        run.after_failure = counts.demand_progress(
            run.session.origin or "", request_of(call), loops.identical_failures, call.name
        )
    except Failure as failure:
        raise failure if failure.denied else not_recorded(failure) from None
    # A request that waited was counted then.
    return ((SESSION, loops.requests_per_hour),) if run.session.id and not run.options.resumed.id else ()


def demand_allowance(call: Call, run: Run, has_room: bool = False) -> None:
    """Require, as the record is now, that the lease covers the call, and that no rate limit and no budget is used up. Raises as
    `allowance`. `has_room`: it is known that no rate limit is."""
    run.session.renew()
    demand_lease(call, run)
    if call.windows and not has_room:
        run.service.record.rate_limits.demand(call.windows, run.session.lineage(), call.name)
    if call.begun_before is None:
        run.session.afford(call.name)
