"""The beginning and the end of a run in its journal.

Three kinds of requests have a journal: a request for a composite, a request with a dedupe key, and a request that waits for an
approval. The journal's header contains everything that is needed to resume the run: the invocation, the session, and the versions
of the language and the interpreter. The versions matter because another interpreter might make other calls.
"""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from datetime import UTC, datetime

from albert_tools.engine.call.context import Call, Request, Run
from albert_tools.engine.call.journal import RunJournal, bounded_failure
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.definition import Json, canonical
from albert_tools.engine.model.failure import Failure

#: The version of the header. A run with another version is not resumed.
JOURNAL_VERSION = 1
#: The state of a run after an error, by the error's code. After any other error the state is ``failed``.
_STATES = {"suspended": "suspended", "cancelled": "cancelled", "unknown_outcome": "interrupted"}


def begin_run(request: Request, target: Target, arguments: Json, call: Call) -> None:
    """Create the journal of an authorized request, unless the request needs no journal or already has one.

    Raises:
        Failure: `io_error`, `too_large`.
    """
    if call.depth or request.run.journal is not None or request.context.runs is None:
        return
    if target.version is not None or request.repeat is not None:
        _create(request, target, arguments)


def _create(request: Request, target: Target, arguments: Json) -> None:
    context, invocation = request.context, request.invocation
    assert context.runs is not None
    header: dict[str, Json] = {
        "journal": JOURNAL_VERSION,
        "tool": target.definition.name,
        "version": target.definition.version,
        "kind": target.definition.kind,
        "arguments": arguments,
        "workspace": str(context.workspace.root),
        "session": request.session.id if request.session is not None else None,
        "principal": request.principal,
        "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "request_id": invocation.request_id,
        "trace": invocation.trace,
        "repeat": request.repeat,
        "reason": invocation.reason,
        **interpreter(target),
    }
    try:
        journal = context.runs.create(request.run.id, header)
    except Failure as failure:
        if failure.code != "too_large" or context.contents is None:
            raise
        header["arguments_ref"] = context.contents.put(canonical(header.pop("arguments")))
        journal = context.runs.create(request.run.id, header)
    request.run.journal = RunJournal(journal, context.contents, fresh=True)


def interpreter(target: Target) -> dict[str, Json]:
    """The facts, besides the source, that determine which steps a program makes."""
    return {
        "language": target.version.language if target.version is not None else 0,
        "python": ".".join(map(str, sys.version_info[:3])),
        "platform": f"{sys.platform}-{platform.machine()}",
    }


async def end_run(request: Request, target: Target | None, output: Json, error: Failure | None) -> None:
    """Write the final state of the run, or its suspension, to the journal and the ledger, and close the journal."""
    run = request.run
    suspended = error is not None and error.code == "suspended"
    with suppress(Failure):
        if run.journal is None and suspended and target is not None and request.context.runs is not None:
            _create(request, target, request.arguments)
    if run.journal is None:
        return
    tool = target.definition.name if target is not None else str(request.invocation.tool)
    approval = error.details.get("approval") if error is not None and suspended else None
    state = "done" if error is None else _STATES.get(error.code, "failed")
    facts: dict[str, Json] = {"error": bounded_failure(error)} if error is not None else {"value": output}
    try:
        with suppress(Failure):
            if suspended and error is not None:
                run.journal.set_state(state, **facts, grant=_grant(request, error))
            else:
                run.journal.set_state(state, **facts, **_totals(request))
        # This entry also writes the state to the journal. From then on another process can resume the run.
        request.recorder.run(run.id, state, tool, approval=approval, code=error.code if error is not None else None)
        if suspended or request.repeat is not None:
            with suppress(Failure):
                await run.journal.sync()
    finally:
        with suppress(Failure):
            run.journal.close()


def _grant(request: Request, error: Failure) -> str | None:
    """The session in which the run will be resumed."""
    sessions = request.context.sessions
    if request.session is None or sessions is None:
        return request.run.session
    if "expires" not in error.details:
        # The run doesn't wait for an answer, so its grant is not extended.
        return request.session.id if request.session.grant else None
    return sessions.grant(request.session, request.run.id, float(error.details["expires"])).id


def _totals(request: Request) -> dict[str, Json]:
    return {
        "effects": [e.as_dict() for e in request.effects],
        "log": "".join(request.printed),
        "calls": request.calls,
        "policy": request.decision.as_dict() if request.decision is not None else None,
    }


def cancellation(run: Run) -> Failure:
    """The failure of a cancelled run. It lists how many calls changed something, and which calls have an unknown outcome."""
    message = run.stop.message if run.stop is not None else "the run was cancelled"
    if run.journal is None:
        return Failure("cancelled", message, details={"applied": 0, "unknown": []})
    details = run.journal.outcome()
    if details["unknown"]:
        first = details["unknown"][0]
        message += f"; whether {first['tool']} (step {first['step']}) was done is not known"
    elif details["applied"]:
        message += f"; {details['applied']} of its calls had changed something, and nothing else was"
    else:
        message += "; nothing had been changed"
    return Failure("cancelled", message, details=details)
