"""The same request again, under the same dedupe key: judged once the session is known, before anything is charged or asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from albert_tools.engine.authority.idempotency import DedupeKey, DedupeKeys, key_of
from albert_tools.engine.call.context import Again, Request
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.definition import digest
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import LoadedRun
from albert_tools.engine.runs.journal import changed
from albert_tools.engine.runs.journal_reader import last_state, proved, result_of

#: Seconds between two looks whether whoever makes the call is done.
_PAUSE = 0.05


async def begin_once(
    request: Request, target: Target, arguments: dict[str, Any], deadline: float, clock: Callable[[], float]
) -> None:
    """Begin the one call under the request's key, or wait for it.

    Raises:
        Again: it has been made; carries its result.
        Failure: `dedupe_conflict`: it was another call, or the key is another run's by now; `unknown_outcome`: whoever began it
            has died; `timeout`: it takes too long.
    """
    keys, key = request.surroundings.dedupe_keys, request.invocation.dedupe_key
    if keys is None:
        return
    name = target.definition.name
    if request.run.steps is not None:
        _go_on(request, keys, name)
        return
    if not key:
        return
    place = key_of(request.origin, name, key)
    # The version that was asked for, not the one that it came to: a tool that was replaced meanwhile makes no new request of it.
    asked = digest([request.invocation.version, arguments])
    while True:
        known = keys.begin(place, asked, request.run.id)
        if known is None:
            request.repeat = f"{place}:{asked}"
            return
        if known.digest != asked:
            raise Failure(
                "dedupe_conflict",
                f"{name} was called under the same key with other arguments",
                hint="use a new key for a new call",
                tool=name,
            )
        run = _run(request, known)
        if run is not None and not run.held:
            last = _last(run)
            if last is None:
                # Its journal was let go of before it had an end.
                raise _unknown(name, known)
            definition, contents = target.definition, request.surroundings.contents
            result = result_of(last, contents, known.run, definition.name, definition.version, definition.family)
            if known.state == "begun" and _refused(result.error) and not changed(run.entries):
                # Whoever began it has died before saying so, or is about to.
                keys.finish(place, known.run, "dropped")
                continue
            raise Again(result)
        ledger = request.surroundings.ledger
        if run is None and (ledger is None or not await asyncio.to_thread(ledger.alive, known.segment)):
            # It may have ended between the two looks.
            now = keys.find(place)
            if now is not None and now.run == known.run and now.state == "begun" and _run(request, known) is None:
                raise _unknown(name, known)
            continue
        if clock() > deadline:
            raise Failure(
                "timeout",
                f"the call of {name} under the same key has not ended yet",
                hint="wait for it, and then ask again under the same key",
                retryable=True,
                tool=name,
                details={"run": known.run},
            )
        await asyncio.sleep(_PAUSE)


def _go_on(request: Request, keys: DedupeKeys, name: str) -> None:
    """A run that goes on began it, and has the key still or again.

    Raises:
        Failure: `dedupe_conflict`: the key is another run's by now.
    """
    request.repeat = request.run.repeat
    if request.repeat is None:
        return
    place, _, asked = request.repeat.partition(":")
    known = keys.begin(place, asked, request.run.id)
    if known is not None and known.run != request.run.id:
        raise Failure(
            "dedupe_conflict",
            "the request was made anew under the same key since the run began",
            hint=f"its result is that of the run {known.run}",
            tool=name,
            details={"run": known.run},
        )


def _refused(error: Failure | None) -> bool:
    return error is not None and error.denied


def ended_once(request: Request, error: Failure | None) -> None:
    """The call under the key has ended: its result is kept, but for a denial, which is as if it had not been asked."""
    keys = request.surroundings.dedupe_keys
    if request.repeat is None or keys is None or (error is not None and error.code == "suspended"):
        return
    # Nothing was begun where there is no journal: it was refused. A program may have come far before it was.
    steps = request.run.steps
    dropped = steps is None or (_refused(error) and not steps.changed())
    with suppress(Failure):
        keys.finish(request.repeat.partition(":")[0], request.run.id, "dropped" if dropped else "kept")


def _run(request: Request, known: DedupeKey) -> LoadedRun | None:
    """The run that was begun under a key, its form proved; None where it has no journal yet.

    Raises:
        Failure: `damaged`, `io_error`, `not_found`.
    """
    runs = request.surroundings.runs
    assert runs is not None
    try:
        found = runs.load(known.run)
    except Failure as failure:
        if known.state == "begun" and failure.code == "not_found":
            return None
        raise
    proved(found.id, found.header, found.entries)
    return found


def _last(run: LoadedRun) -> Mapping[str, Any] | None:
    """How a run has ended, also that it waits for an answer; None while nobody can say."""
    last = last_state(run.entries)
    return None if last is None or last["state"] == "resumed" else last


def _unknown(name: str, known: DedupeKey) -> Failure:
    return Failure(
        "unknown_outcome",
        f"{name} was called under the same key by a process that has died; what it did is not known",
        hint=f"`albert runs show {known.run}` says how far it came; to do it all the same, use a new key",
        tool=name,
        details={"run": known.run},
    )
