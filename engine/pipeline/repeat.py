"""Idempotency. A request with a dedupe key that was already used gets the result of the first request.

This check follows the check of the session. Nothing has been charged at this point, and nobody has been asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from albert_tools.engine.authority.idempotency import DedupeKeys, key_of
from albert_tools.engine.call.context import Repeated, Request
from albert_tools.engine.call.journal import may_have_changed
from albert_tools.engine.call.journal_reader import check_form, last_state, result_of
from albert_tools.engine.call.lookup import Target
from albert_tools.engine.model.definition import digest
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import DedupeKey, LoadedRun

#: Seconds between two checks whether the first request has ended.
_POLL_SECONDS = 0.05


async def begin_once(
    request: Request, target: Target, arguments: dict[str, Any], deadline: float, clock: Callable[[], float]
) -> None:
    """Begin the call with the request's dedupe key, or wait for the request that already began it.

    Args:
        request: The request.
        target: Its tool.
        arguments: Its valid arguments.
        deadline: When to stop waiting, in the time of `clock`.
        clock: A monotonic clock, in seconds.

    Raises:
        Repeated: The call was already made. The exception contains its result.
        Failure: `dedupe_conflict` if the key was used for another call; `unknown_outcome` if the process that began the call has
            died; `timeout` if the first request has not ended in time.
    """
    keys, key = request.context.dedupe_keys, request.invocation.dedupe_key
    if keys is None:
        return
    name = target.definition.name
    if request.run.journal is not None:
        _resume_key(request, keys, name)
        return
    if not key:
        return
    key_id = key_of(request.origin, name, key)
    # This is the version as the caller gave it. If the tool is replaced in the meantime, the request is still the same.
    call_digest = digest([request.invocation.version, arguments])
    while True:
        first = keys.begin(key_id, call_digest, request.run.id)
        if first is None:
            request.repeat = f"{key_id}:{call_digest}"
            return
        if first.digest != call_digest:
            raise Failure(
                "dedupe_conflict",
                f"{name} was called under the same key with other arguments",
                hint="use a new key for a new call",
                tool=name,
            )
        run = _run(request, first)
        if run is not None and not run.held:
            last = _last_state_of(run)
            if last is None:
                raise _unknown(name, first)
            definition, contents = target.definition, request.context.contents
            result = result_of(last, contents, first.run, definition.name, definition.version, definition.family)
            if first.state == "begun" and _is_denial(result.error) and not may_have_changed(run.entries):
                # The process whose call was denied died before it dropped the key, or is about to drop it.
                keys.finish(key_id, first.run, "dropped")
                continue
            raise Repeated(result)
        ledger = request.context.ledger
        if run is None and (ledger is None or not await asyncio.to_thread(ledger.alive, first.owner)):
            # The call may have ended since the first check.
            now = keys.find(key_id)
            if now is not None and now.run == first.run and now.state == "begun" and _run(request, first) is None:
                raise _unknown(name, first)
            continue
        if clock() > deadline:
            raise Failure(
                "timeout",
                f"the call of {name} under the same key has not ended yet",
                hint="wait, then send the request again under the same key",
                retryable=True,
                tool=name,
                details={"run": first.run},
            )
        await asyncio.sleep(_POLL_SECONDS)


def _resume_key(request: Request, keys: DedupeKeys, name: str) -> None:
    """Take the key again for a resumed run, unless another run has taken it.

    Raises:
        Failure: `dedupe_conflict`.
    """
    request.repeat = request.run.repeat
    if request.repeat is None:
        return
    key_id, _, call_digest = request.repeat.partition(":")
    first = keys.begin(key_id, call_digest, request.run.id)
    if first is not None and first.run != request.run.id:
        raise Failure(
            "dedupe_conflict",
            "another request has used the same key since the run began",
            hint=f"its result is that of the run {first.run}",
            tool=name,
            details={"run": first.run},
        )


def _is_denial(error: Failure | None) -> bool:
    return error is not None and error.denied


def ended_once(request: Request, error: Failure | None) -> None:
    """Record that the call with the key has ended. The key retains the result. If the call was denied, the key is dropped."""
    keys = request.context.dedupe_keys
    if request.repeat is None or keys is None or (error is not None and error.code == "suspended"):
        return
    # A request without a journal was refused. A program may have changed something before one of its calls was denied.
    journal = request.run.journal
    dropped = journal is None or (_is_denial(error) and not journal.may_have_changed())
    with suppress(Failure):
        keys.finish(request.repeat.partition(":")[0], request.run.id, "dropped" if dropped else "kept")


def _run(request: Request, first: DedupeKey) -> LoadedRun | None:
    """The run that was begun with a key, after its form is checked; None if it has no journal yet.

    Raises:
        Failure: `damaged`, `io_error`, `not_found`.
    """
    runs = request.context.runs
    assert runs is not None
    try:
        found = runs.load(first.run)
    except Failure as failure:
        if first.state == "begun" and failure.code == "not_found":
            return None
        raise
    check_form(found.id, found.header, found.entries)
    return found


def _last_state_of(run: LoadedRun) -> Mapping[str, Any] | None:
    """The entry that states how the run ended, or that it is suspended; None if its end is not known."""
    last = last_state(run.entries)
    return None if last is None or last["state"] == "resumed" else last


def _unknown(name: str, first: DedupeKey) -> Failure:
    return Failure(
        "unknown_outcome",
        f"{name} was called under the same key by a process that died; what the call did is not known",
        hint=f"`albert runs show {first.run}` shows how far the run got; to make the call anyway, use a new key",
        tool=name,
        details={"run": first.run},
    )
