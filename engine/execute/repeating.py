"""The same request again, under the same dedupe key: judged once the session is known, before anything is charged or asked."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import Any

from albert_tools.engine.execute.chain import Again, Request
from albert_tools.engine.execute.lookup import Target
from albert_tools.engine.execute.steps import loaded, read_effect, read_failure
from albert_tools.engine.govern.repeats import Repeat, key_of
from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import ToolResult

#: Seconds between two looks whether whoever makes the call is done.
_PAUSE = 0.05


async def begin_once(request: Request, target: Target, arguments: dict[str, Any]) -> None:
    """Begin the one call under the request's key, or wait for it.

    Raises:
        Again: it has been made; carries its result.
        Failure: `dedupe_conflict`; `unknown_outcome`: whoever began it has died.
    """
    repeats, key = request.surroundings.repeats, request.invocation.dedupe_key
    if not key or repeats is None:
        return
    name = target.definition.name
    place = key_of(request.session.id if request.session is not None else None, name, key)
    if request.run.steps is not None:
        # A run that goes on began it.
        request.repeat = place
        return
    digest = hashlib.sha256(canonical([target.definition.version, arguments])).hexdigest()
    while True:
        known = repeats.begin(place, digest, request.run.id)
        if known is None:
            request.repeat = place
            return
        if known.digest != digest:
            raise Failure(
                "dedupe_conflict",
                f"{name} was called under the key {key!r} with other arguments",
                hint="use a new key for a new call",
                tool=name,
            )
        result = _result(request, target, known)
        if result is not None:
            raise Again(result)
        ledger = request.surroundings.ledger
        if ledger is None or not await asyncio.to_thread(ledger.alive, known.segment):
            # It may have ended between the two looks.
            now = repeats.look(place)
            if now is not None and now.run == known.run and now.state == "begun":
                raise _unknown(name, key, known)
            continue
        await asyncio.sleep(_PAUSE)


def ended_once(request: Request, error: Failure | None) -> None:
    """The call under the key has ended: its result is kept, but for a denial, which is as if it had not been asked."""
    repeats = request.surroundings.repeats
    if request.repeat is None or repeats is None or (error is not None and error.code == "suspended"):
        return
    # Nothing was begun where there is no journal: it was refused.
    dropped = request.run.steps is None or (error is not None and error.denied)
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
        entries = runs.load(known.run).entries
    except Failure as failure:
        if known.state == "begun" and failure.code == "not_found":
            return None
        raise
    states = [e for e in entries if e.get("t") == "state"]
    if not states or (known.state == "begun" and states[-1]["state"] != "suspended"):
        return None
    last = states[-1]
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
