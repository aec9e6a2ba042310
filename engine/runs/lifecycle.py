"""The beginning and the end of a run in its journal.

Three kinds of requests have a journal: a request for a composite, a request with a dedupe key, and a request that waits for an
approval. The journal's header contains what is needed to resume the run: the invocation, the session, and the versions of the
language and the interpreter, because another interpreter might make other calls.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from albert_tools.engine.call import ledger
from albert_tools.engine.call.context import Call, Queued, Run
from albert_tools.engine.call.journal import RunJournal, bounded_failure
from albert_tools.engine.model.definition import Json, canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import counted
from albert_tools.engine.model.result import may_change

#: The version of the header. A run with another version is not resumed.
JOURNAL_VERSION = 1
#: The state of a run after an error, by the error's code. After any other error the state is ``failed``.
_STATES = {"suspended": "suspended", "cancelled": "cancelled", "unknown_outcome": "interrupted"}


def begin_run(call: Call, run: Run) -> None:
    """Create the journal of an authorized request, unless the request needs no journal or already has one.

    Raises:
        Failure: `io_error`, `too_large`.
    """
    if call.depth or run.journal.id is not None:
        return
    if call.target.version is not None or run.repeat is not None:
        _create(run)


def _create(run: Run) -> None:
    service, invocation, target = run.service, run.invocation, run.target
    # An action that waits for an answer is requested again afterwards.
    if service.runs is None or run.options.action is not None:
        return
    header: dict[str, Json] = {
        "journal": JOURNAL_VERSION,
        "tool": target.definition.name,
        "version": target.definition.version,
        "kind": target.definition.kind,
        "arguments": run.arguments,
        "workspace": service.root if run.options.queued is None else run.options.queued.workspace(service.root),
        "session": run.session.id,
        "principal": run.principal,
        "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "request_id": invocation.request_id,
        "trace": run.trace,
        "repeat": run.repeat,
        "reason": invocation.reason,
        "language": target.version.language if target.version is not None else 0,
        **(machine() if run.options.queued is None else _of_queue(run.options.queued)),
    }
    contents = run.contents
    if run.options.unsaved is not None and contents is not None:
        # No store has this version, so the run itself keeps it.
        header["source"] = run.source = contents.put(canonical(run.options.unsaved.to_document()))
    try:
        journal = service.runs.create(run.id, header)
    except Failure as failure:
        if failure.code != "too_large" or contents is None:
            raise
        header["arguments_ref"] = contents.put(canonical(header.pop("arguments")))
        journal = service.runs.create(run.id, header)
    run.journal = RunJournal(journal, contents, fresh=True)


def machine() -> dict[str, Json]:
    """The interpreter, on which a program's steps depend. That of a queued run is known when it begins."""
    return {"python": ".".join(map(str, sys.version_info[:3])), "platform": f"{sys.platform}-{platform.machine()}"}


def _of_queue(queued: Queued) -> dict[str, Json]:
    facts: dict[str, Json] = {"queue": queued.queue, "priority": queued.priority}
    if queued.batch:
        facts["batch"] = queued.batch
    return facts if queued.repository is None else {**facts, "changes": queued.changes}


def derived_id(*parts: object) -> str:
    """The id of a run that follows from these parts, so that nobody can queue it twice."""
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:16]


def needed(host: str | None = None) -> str:
    """The interpreter in words. A queued run that has begun in it needs it; one that works in a checkout also needs its `host`."""
    here = machine()
    return f"Python {here['python']} on {here['platform']}" + (f", the checkout on {host}" if host is not None else "")


async def end_run(run: Run, output: Json, error: Failure | None) -> None:
    """Write the final state of the run, or its suspension, to the journal and the ledger, and close the journal.

    Raises:
        Failure: `governance_unavailable`: see `ledger.write_results`.
    """
    suspended = error is not None and error.code == "suspended"
    queued = run.options.queued if suspended else None
    with suppress(Failure):
        if run.journal.id is None and suspended:
            _create(run)
    journal = run.journal
    if journal.id is None:
        return
    approval = error.details.get("approval") if error is not None and suspended else None
    state = "done" if error is None else _STATES.get(error.code, "failed")
    facts: dict[str, Json] = {"error": bounded_failure(error)} if error is not None else {"value": output}
    try:
        with suppress(Failure):
            if queued is not None:
                journal.set_state("queued")
            elif suspended and error is not None:
                journal.set_state(state, **facts, grant=_grant(run, error))
            else:
                journal.set_state(state, **facts, **_totals(run))
        # This entry also writes the state to the journal. From then on another process can resume the run.
        if queued is not None:
            ledger.queued(run, queued)
        else:
            code = error.code if error is not None else None
            ledger.changed(run, state, approval=approval, code=code, queue=run.options.resumed.queue)
        await ledger.write_results(run)
        if suspended or run.repeat is not None:
            with suppress(Failure):
                await journal.sync()
    finally:
        with suppress(Failure):
            journal.close()


def _grant(run: Run, error: Failure) -> str | None:
    """The id of the session in which the run will be resumed."""
    if run.session.id is None:
        return run.options.resumed.session
    return run.session.grant(run.id, error.details.get("expires"))


def _totals(run: Run) -> dict[str, Json]:
    return {
        "effects": [e.as_dict() for e in run.report.effects],
        "log": "".join(run.report.printed),
        "calls": run.report.calls,
        "policy": run.report.decision,
    }


def cancellation(journal: RunJournal, message: str) -> Failure:
    """The failure of a cancelled run. It lists how many calls changed something, and which calls have an unknown outcome."""
    details = journal.outcome()
    if journal.id is None:
        return Failure("cancelled", message, details=details)
    return Failure("cancelled", f"{message}; {_what_was_done(details)}", details=details)


def end_of_request(failure: Failure, run: Run) -> Failure:
    """The failure of a request. If it is a denial and earlier calls had changed something, the denial says so."""
    details = run.journal.outcome()
    if run.journal.id is None:
        details["applied"] = int(any(may_change(e.kind, e.facts) for e in run.report.effects))
    if not failure.denied:
        return failure
    if details["applied"] or details["unknown"]:
        message = f"{failure.message}; {_what_was_done(details)}"
        return failure.copy(message=message, details=failure.details | details)
    sent = sum(e.kind == "network" and not e.facts.get("refused") for e in run.report.effects)
    said = f"{counted(sent, 'request')} {'was' if sent == 1 else 'were'} sent before"
    return failure.copy(message=f"{failure.message}; {said}") if sent else failure


def _what_was_done(details: Mapping[str, Any]) -> str:
    if details["unknown"]:
        first = details["unknown"][0]
        return f"whether {first['tool']} (step {first['step']}) was done is not known"
    if details["applied"]:
        return f"{details['applied']} of its calls had changed something"
    return "nothing had been changed"
