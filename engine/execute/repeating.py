"""The same request again, under the same dedupe key: judged once the session is known, before anything is charged or asked."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from albert_tools.engine.execute.chain import Request
from albert_tools.engine.execute.lookup import Target
from albert_tools.engine.execute.steps import changed, loaded, read_effect, read_failure
from albert_tools.engine.govern.repeats import Repeat, key_of
from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.records import LoadedRun
from albert_tools.engine.model.result import ToolResult

#: Seconds between two looks whether whoever makes the call is done.
_PAUSE = 0.05


class Again(Exception):
    """It was made before: the result of then."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


async def begin_once(request: Request, target: Target, arguments: dict[str, Any]) -> None:
    """Begin the one call under the request's key, or wait for it.

    Raises:
        Again: it has been made; carries its result.
        Failure: `dedupe_conflict`: another call, or the key is another run's by now; `unknown_outcome`: its process has died.
    """
    repeats, key = request.surroundings.repeats, request.invocation.dedupe_key
    if not key or repeats is None:
        return
    name = target.definition.name
    place = key_of(request.session.whose if request.session is not None else None, name, key)
    digest = hashlib.sha256(canonical([target.definition.version, arguments])).hexdigest()
    while True:
        known = repeats.begin(place, digest, request.run.id)
        if known is None or known.run == request.run.id:
            # A run that goes on began it, and has it still or again.
            request.repeat = place
            return
        if request.run.steps is not None:
            raise Failure(
                "dedupe_conflict",
                f"the request was made anew under the key {key!r} since the run began",
                hint=f"its result is that of the run {known.run}",
                tool=name,
                details={"run": known.run},
            )
        if known.digest != digest:
            raise Failure(
                "dedupe_conflict",
                f"{name} was called under the key {key!r} with other arguments",
                hint="use a new key for a new call",
                tool=name,
            )
        run = _run(request, known)
        if run is not None and not run.held and (last := _last(run)) is not None:
            result = _result(request, target, known, last)
            denied = result.error is not None and result.error.denied
            if known.state == "begun" and denied and not changed(run.entries):
                # Whoever began it has died before saying so, or is about to.
                repeats.say(place, known.run, "dropped")
                continue
            raise Again(result)
        ledger = request.surroundings.ledger
        if run is not None and not run.held:
            # Its journal was let go of before it had an end.
            raise _unknown(name, key, known)
        if run is None and (ledger is None or not await asyncio.to_thread(ledger.alive, known.segment)):
            # It may have ended between the two looks.
            now = repeats.look(place)
            if now is not None and now.run == known.run and now.state == "begun" and _run(request, known) is None:
                raise _unknown(name, key, known)
            continue
        await asyncio.sleep(_PAUSE)


def ended_once(request: Request, error: Failure | None) -> None:
    """The call under the key has ended: its result is kept, but for a denial, which is as if it had not been asked."""
    repeats = request.surroundings.repeats
    if request.repeat is None or repeats is None or (error is not None and error.code == "suspended"):
        return
    # Nothing was begun where there is no journal: it was refused. A program may have come far before it was.
    steps = request.run.steps
    dropped = steps is None or (error is not None and error.denied and not steps.changed())
    with suppress(Failure):
        repeats.say(request.repeat, request.run.id, "dropped" if dropped else "kept")


def _run(request: Request, known: Repeat) -> LoadedRun | None:
    """The run that was begun under a key; None where it has no journal yet.

    Raises:
        Failure: `damaged`, `io_error`, `not_found`.
    """
    runs = request.surroundings.runs
    assert runs is not None
    try:
        return runs.load(known.run)
    except Failure as failure:
        if known.state == "begun" and failure.code == "not_found":
            return None
        raise


def _last(run: LoadedRun) -> Mapping[str, Any] | None:
    """How a run has ended, also that it waits for an answer; None while nobody can say."""
    states = [e for e in run.entries if e.get("t") == "state"]
    return states[-1] if states and states[-1]["state"] != "resumed" else None


def _result(request: Request, target: Target, known: Repeat, last: Mapping[str, Any]) -> ToolResult:
    """The result of then.

    Raises:
        Failure: `damaged`, `io_error`, `not_found`.
    """
    output = loaded(request.surroundings.contents, last["ref"]) if "ref" in last else last.get("value")
    return ToolResult(
        tool=target.definition.name,
        output=output,
        error=read_failure(last["error"]) if "error" in last else None,
        version=target.definition.version,
        effects=tuple(read_effect(e) for e in last.get("effects", ())),
        log=last.get("log", ""),
        calls=last.get("calls", 0),
        policy=last.get("policy"),
        family=target.definition.family,
        run_id=known.run,
    )


def _unknown(name: str, key: str, known: Repeat) -> Failure:
    return Failure(
        "unknown_outcome",
        f"{name} was called under the key {key!r} by a process that has died; what it did is not known",
        hint=f"`albert runs show {known.run}` says how far it came; to do it all the same, use a new key",
        tool=name,
        details={"run": known.run},
    )
