"""The stage of the session: it is active, and its lease covers the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from albert_tools.engine.call.context import Call, Run, available
from albert_tools.engine.model.failure import Failure

if TYPE_CHECKING:
    from albert_tools.engine.authority.sessions import Line

#: The name in a lease that allows a session to run sources.
RUN_SOURCE = "run_source"


async def session(call: Call, run: Run) -> Call:
    """Find the session of a request. Check the lease for every call.

    Raises:
        Failure: `permission_denied`, `governance_unavailable`.
    """
    if not call.depth and (run.invocation.session is not None or _known(run) is not None):
        if run.session.id is None:
            find_session(run)
        call = replace(call, deadline=min(call.deadline, run.clock() + run.session.seconds()))
    demand_lease(call, run)
    return call


def demand_lease(call: Call, run: Run) -> None:
    """Require that the session is active and that its lease covers the call.

    Raises:
        Failure: `permission_denied`.
    """
    if run.session.id is None:
        return  # The owner may call every tool.
    if run.batch and not call.depth:
        return  # The service has written this source. The lease must cover the calls for the items.
    if run.options.unsaved is not None and not call.depth:
        # A source chooses its own name, so a lease for that name does not apply to it.
        run.session.demand(RUN_SOURCE)
    else:
        callers = tuple(zip(call.callers, call.trail, strict=True))
        run.session.demand(call.name, callers, lambda: call.target.author)


def line_of_request(run: Run) -> Line | Failure | None:
    """Read the session of the request, by its token or its id. Returns a failure if it is not active, and None for the owner."""
    token, known = run.invocation.session, _known(run)
    if token is None and known is None:
        return None
    sessions = run.service.record.sessions
    try:
        root = run.service.root
        return sessions.line_of_run(known, root, run.id) if known is not None else sessions.line_of(token or "", root)
    except Failure as failure:
        # Its traceback would keep the arguments.
        return failure.copy()


def client_of(run: Run) -> str | None:
    """See `ServiceContext.client_of`."""
    line = run.line
    return None if line is None or isinstance(line, Failure) else run.service.record.sessions.lineage(line)[-1]


def find_session(run: Run) -> None:
    """Make the calls of the request those of its session.

    Raises:
        Failure: `permission_denied`; `budget_exceeded` if nothing more may be stored for the session of a new request.
    """
    from albert_tools.engine.authority.leased_session import LeasedSession

    service, line = run.service, available(run.line)
    assert line is not None
    run.session = LeasedSession(service.record.sessions, line, service.ledger, lambda: service.quota)
    run.journal.charge(run.contents)
    if run.options.resumed.session is None:
        # Even a refusal is stored, so this comes first. The calls of a run that is resumed are judged one by one.
        run.session.demand_room()
    if line[0].cwd:
        run.workspace_or_failure = service.workspace.at(line[0].cwd)


def _known(run: Run) -> str | None:
    """The id of the session, if a resumed run has recorded it, or a call within it makes the request."""
    return run.options.resumed.session or (run.options.queued.session if run.options.queued is not None else None)
