"""A request's run: begun in its journal, and ended there.

Every request for a saved tool has one, every one under a dedupe key, and every one that waits for an answer. Its header says all
that is needed to go through it again: what was asked for, on whose behalf, and by which language and interpreter the program was
run, which must be the same for the same steps to follow.
"""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from datetime import UTC, datetime

from albert_tools.engine.call.context import Chain, Request, Run
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.definition import Json, canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.runs.journal import Steps, briefly

#: Of the header; a run with another one isn't gone on with.
JOURNAL_VERSION = 1


def begin_run(request: Request, target: Target, arguments: Json, chain: Chain) -> None:
    """Begin the journal of a request that may be made, where it is to have one.

    Raises:
        Failure: `io_error`, `too_large`.
    """
    if chain.depth or request.run.steps is not None or request.surroundings.runs is None:
        return
    if target.version is not None or request.repeat is not None:
        _create(request, target, arguments)


def _create(request: Request, target: Target, arguments: Json) -> None:
    surroundings, invocation = request.surroundings, request.invocation
    assert surroundings.runs is not None
    header: dict[str, Json] = {
        "journal": JOURNAL_VERSION,
        "tool": target.definition.name,
        "version": target.definition.version,
        "kind": target.definition.kind,
        "arguments": arguments,
        "workspace": str(surroundings.workspace.root),
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
        journal = surroundings.runs.create(request.run.id, header)
    except Failure as failure:
        if failure.code != "too_large" or surroundings.contents is None:
            raise
        header["arguments_ref"] = surroundings.contents.put(canonical(header.pop("arguments")))
        journal = surroundings.runs.create(request.run.id, header)
    request.run.steps = Steps(journal, surroundings.contents, fresh=True)
    request.recorder.run(request.run.id, "begun", target.definition.name, version=target.definition.version)


def interpreter(target: Target) -> dict[str, Json]:
    """What a program's steps depend on besides itself."""
    return {
        "language": target.version.language if target.version is not None else 0,
        "python": ".".join(map(str, sys.version_info[:3])),
        "platform": f"{sys.platform}-{platform.machine()}",
    }


async def end_run(request: Request, target: Target | None, output: Json, error: Failure | None) -> None:
    """Write down what has become of the run, and let go of its journal."""
    run = request.run
    suspended = error is not None and error.code == "suspended"
    with suppress(Failure):
        if run.steps is None and suspended and target is not None and request.surroundings.runs is not None:
            _create(request, target, request.arguments)
    if run.steps is None:
        return
    state = "suspended" if suspended else "done" if error is None else "failed"
    if error is not None and error.code in ("cancelled", "unknown_outcome"):
        state = "cancelled" if error.code == "cancelled" else "interrupted"
    facts: dict[str, Json] = {"error": briefly(error)} if error is not None else {"value": output}
    try:
        with suppress(Failure):
            if suspended and error is not None:
                run.steps.state(state, **facts, grant=_granted(request, error))
            else:
                _finish(request, run.steps, state, facts)
            if suspended or request.repeat is not None:
                await run.steps.sync()
    finally:
        with suppress(Failure):
            run.steps.journal.close()
    tool = target.definition.name if target is not None else str(request.invocation.tool)
    approval = error.details.get("approval") if error is not None and suspended else None
    request.recorder.run(run.id, state, tool, approval=approval, code=error.code if error is not None else None)


def _granted(request: Request, error: Failure) -> str | None:
    """The session that the run goes on in."""
    sessions = request.surroundings.sessions
    if request.session is None or sessions is None:
        return request.run.session
    if "expires" not in error.details:
        # Being denied for now gives no more time than there was.
        return request.session.id if request.session.grant else None
    return sessions.grant(request.session, request.run.id, float(error.details["expires"])).id


def _finish(request: Request, steps: Steps, state: str, facts: dict[str, Json]) -> None:
    decision = request.decision.as_dict() if request.decision is not None else None
    rest: dict[str, Json] = {
        "effects": [e.as_dict() for e in request.effects],
        "log": "".join(request.printed),
        "calls": request.calls,
        "policy": decision,
    }
    steps.state(state, **facts, **rest)


def stopped(run: Run) -> Failure:
    """What a run that was called off ends with: what it has done, and what nobody knows."""
    details: dict[str, Json] = {"applied": 0, "unknown": []}
    if run.steps is not None:
        details = run.steps.outcome()
    unknown = details["unknown"]
    if unknown:
        told = f"; whether {unknown[0]['tool']} (step {unknown[0]['step']}) was done is not known"
    else:
        told = (
            f"; {details['applied']} of its calls had changed something, and nothing else was"
            if details["applied"]
            else ("; nothing had been changed" if run.steps is not None else "")
        )
    base = run.stop.message if run.stop is not None else "the run was called off"
    return Failure("cancelled", base + told, details=details)
