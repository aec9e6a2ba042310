"""The stage of dedupe keys. A request with a key that was already used gets the result of the first request.

It follows the stage of the session, because a key belongs to a session. Nothing has been charged yet, and nobody has been asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from albert_tools.engine.authority.idempotency import DedupeKeys, key_of
from albert_tools.engine.call.context import Call, Repeated, Run
from albert_tools.engine.call.journal import may_have_changed
from albert_tools.engine.call.journal_reader import check_form, last_state, result_of
from albert_tools.engine.model.definition import digest
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.record_types import DedupeKey, LoadedRun

#: Seconds between two checks whether the first request has ended.
_POLL_SECONDS = 0.05


async def repeat(call: Call, run: Run) -> Call:
    """Begin the request with its dedupe key, or wait for the request that already began it.

    Raises:
        Repeated: The request was already made. The exception contains its result.
        Failure: `dedupe_conflict` if the key was used for another call; `unknown_outcome` if the process that began the call has
            died; `timeout` if the first request has not ended in time.
    """
    key = run.invocation.dedupe_key
    if call.depth or run.repeat is not None or not (key or run.options.resumed.repeat):
        return call
    keys = run.service.record.dedupe_keys
    if run.options.resumed.repeat is not None:
        _resume_key(run.options.resumed.repeat, run, keys, call.name)
        return call
    key_id = key_of(run.session.origin, key or "")
    # The version is the one that the caller gave. If the tool is replaced in the meantime, the request is still the same.
    call_digest = digest([call.name, run.invocation.version, call.arguments])
    first = None
    while True:
        # Who waits only reads the key, until it is free again.
        first = (keys.find(key_id) if first else None) or keys.begin(key_id, call_digest, run.id, run.session.id)
        if first is None:
            run.repeat = f"{key_id}:{call_digest}"
            return call
        if first.digest != call_digest:
            raise Failure(
                "dedupe_conflict",
                f"the key was used for another call, not for {call.name} with these arguments",
                hint="use a new key for a new call",
                tool=call.name,
            )
        await _wait_for(first, key_id, call, run, keys)


async def _wait_for(first: DedupeKey, key_id: str, call: Call, run: Run, keys: DedupeKeys) -> None:
    """Return when the state of the key may have changed.

    Raises:
        Repeated: The first request has ended.
        Failure: `unknown_outcome`, `timeout`.
    """
    service, definition = run.service, call.target.definition
    first_run = _run(run, first)
    if first_run is not None and not first_run.held:
        last = _last_state_of(first_run)
        if last is None:
            raise _unknown(call.name, first)
        result = result_of(last, service.contents, first.run, definition)
        if first.state == "begun" and _is_denial(result.error) and not may_have_changed(first_run.entries):
            # A denied call drops its key. Its process died before that, or is about to do it.
            keys.finish(key_id, first.run, "dropped", run.session.id)
            return
        raise Repeated(result)
    if first_run is None and not await asyncio.to_thread(service.ledger.alive, first.owner):
        # The call may have ended since the key was read.
        now = keys.find(key_id)
        if now is not None and now.run == first.run and now.state == "begun" and _run(run, first) is None:
            raise _unknown(call.name, first)
        return
    if run.clock() > call.deadline:
        raise Failure(
            "timeout",
            f"the first call of {call.name} with this key has not ended yet",
            hint="wait, then send the request again with the same key",
            retryable=True,
            tool=call.name,
            details={"run": first.run},
        )
    await asyncio.sleep(_POLL_SECONDS)


def _resume_key(repeat: str, run: Run, keys: DedupeKeys, name: str) -> None:
    """Take the key again for a resumed run, unless another run has taken it.

    Raises:
        Failure: `dedupe_conflict`.
    """
    key_id, _, call_digest = repeat.partition(":")
    first = keys.begin(key_id, call_digest, run.id, run.session.id)
    if first is not None and first.run != run.id:
        raise Failure(
            "dedupe_conflict",
            "another request has used the same key since the run began",
            hint=f"its result is that of the run {first.run}",
            tool=name,
            details={"run": first.run},
        )
    run.repeat = repeat


def _is_denial(error: Failure | None) -> bool:
    return error is not None and error.denied


def ended_once(run: Run, error: Failure | None) -> None:
    """Record that the request with the key has ended. The key retains the result. If the call was denied, the key is dropped."""
    if run.repeat is None or (error is not None and error.code == "suspended"):
        return
    # A request without a journal was refused. A program may have changed something before one of its calls was denied.
    dropped = run.journal.id is None or (_is_denial(error) and not run.journal.may_have_changed())
    with suppress(Failure):
        keys = run.service.record.dedupe_keys
        keys.finish(run.repeat.partition(":")[0], run.id, "dropped" if dropped else "kept", run.session.id)


def _run(run: Run, first: DedupeKey) -> LoadedRun | None:
    """The run that was begun with a key, after its form is checked; None if it has no journal yet.

    Raises:
        Failure: `damaged`, `io_error`, `not_found`.
    """
    runs = run.service.runs
    assert runs is not None
    try:
        first_run = runs.load(first.run)
    except Failure as failure:
        if first.state == "begun" and failure.code == "not_found":
            return None
        raise
    check_form(first_run.id, first_run.header, first_run.entries)
    return first_run


def _last_state_of(run: LoadedRun) -> Mapping[str, Any] | None:
    """The entry that states how the run ended or was suspended; None if there is none."""
    last = last_state(run.entries)
    return None if last is None or last["state"] == "resumed" else last


def _unknown(name: str, first: DedupeKey) -> Failure:
    return Failure(
        "unknown_outcome",
        f"{name} was called with the same key by a process that died; what the call did is not known",
        hint=f"`albert runs show {first.run}` shows how far the run got; to make the call anyway, use a new key",
        tool=name,
        details={"run": first.run},
    )
