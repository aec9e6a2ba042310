"""The same request again, under the same dedupe key: judged once the session is known, before anything is charged or asked."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from albert_tools.engine.execute.chain import Request
from albert_tools.engine.execute.lookup import Target
from albert_tools.engine.execute.recorded import OVER, last_state, proved, result_of
from albert_tools.engine.govern.repeats import Repeat, key_of
from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.failure import DENIALS, Failure
from albert_tools.engine.model.result import ToolResult

#: Seconds between two looks whether whoever makes the call is done.
_PAUSE = 0.05


class Again(Exception):
    """It was made before: the result of then."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


async def begin_once(
    request: Request, target: Target, arguments: dict[str, Any], deadline: float, clock: Callable[[], float]
) -> None:
    """Begin the one call under the request's key, or wait for it.

    Raises:
        Again: it has been made; carries its result.
        Failure: `dedupe_conflict`; `unknown_outcome`: whoever began it has died; `timeout`: it takes too long.
    """
    repeats, key = request.surroundings.repeats, request.invocation.dedupe_key
    if request.run.steps is not None:
        # A run that goes on began it.
        request.repeat = request.run.repeat
        return
    if not key or repeats is None:
        return
    name = target.definition.name
    place = key_of(request.origin, name, key)
    # The version that was asked for, not the one that it came to: a tool that was replaced meanwhile makes no new request of it.
    digest = hashlib.sha256(canonical([request.invocation.version, arguments])).hexdigest()
    while True:
        known = repeats.begin(place, digest, request.run.id)
        if known is None:
            request.repeat = place
            return
        if known.digest != digest:
            raise Failure(
                "dedupe_conflict",
                f"{name} was called under the same key with other arguments",
                hint="use a new key for a new call",
                tool=name,
            )
        result = _result(request, target, known)
        if result is not None:
            raise Again(result)
        if not await asyncio.to_thread(_under_way, request, known):
            # It may have ended between the two looks.
            now = repeats.look(place)
            if now is not None and now.run == known.run and now.state == "begun" and not _result(request, target, now):
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


def _under_way(request: Request, known: Repeat) -> bool:
    """Whether anybody is still at it: who began it, or whoever goes on with its run."""
    ledger, runs = request.surroundings.ledger, request.surroundings.runs
    if ledger is not None and ledger.alive(known.segment):
        return True
    try:
        return runs is not None and runs.load(known.run).held
    except Failure:
        return False


def ended_once(request: Request, error: Failure | None) -> None:
    """The call under the key has ended: its result is kept, but for a denial, which is as if it had not been asked."""
    repeats = request.surroundings.repeats
    if request.repeat is None or repeats is None or (error is not None and error.code == "suspended"):
        return
    # What was refused before anything was done; what a call within it was denied later on changes nothing of what was done.
    steps = request.run.steps
    dropped = not request.begun and (steps is None or not steps.any())
    with suppress(Failure):
        repeats.say(request.repeat, request.run.id, "dropped" if dropped else "kept")


def _result(request: Request, target: Target, known: Repeat) -> ToolResult | None:
    """The result of then; also that it waits for an answer. None while it is under way.

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
    last = last_state(found.entries)
    if last is None or (known.state == "begun" and last["state"] not in (*OVER, "suspended")):
        return None
    if known.state == "begun" and "error" in last and last["error"]["code"] in DENIALS:
        return None  # It may be about to be dropped.
    definition = target.definition
    contents = request.surroundings.contents
    return result_of(last, contents, known.run, definition.name, definition.version, definition.family)


def _unknown(name: str, known: Repeat) -> Failure:
    return Failure(
        "unknown_outcome",
        f"{name} was called under the same key by a process that has died; what it did is not known",
        hint=f"`albert runs show {known.run}` says how far it came; to do it all the same, use a new key",
        tool=name,
        details={"run": known.run},
    )
