"""Dedupe keys: a call with a key is made once. Every other call with the same key gets the result of the first.

A key belongs to a session. The ledger gets an entry before the call is made. So if two calls with one key start at the
same time, even in different processes, one is made and the other waits for its result. After a denied call, the key is free
again. If the process that makes the call dies, it is unknown what the call has done. The other calls then get `unknown_outcome`,
and the call is not repeated.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Literal

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.protocols import Record
from albert_tools.engine.model.record_types import DedupeKey

#: Seconds that a key is retained after its call has ended.
KEPT_SECONDS = 24 * 3600.0


class DedupeKeys:
    """The dedupe keys of a home."""

    def __init__(self, ledger: Record, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock

    def begin(self, key: str, digest: str, run: str, session: str | None = None) -> DedupeKey | None:
        """Claim a key for a call. Returns None if the caller shall make the call; otherwise, the state of the key, which is taken.

        `session` is the id of the session that is charged for the entry.

        Raises:
            Failure: `io_error`, `damaged`.
        """
        with self._ledger.transaction():
            known = self.find(key)
            if known is not None and known.state == "kept" and known.at <= self._clock() - KEPT_SECONDS:
                known = None
            if known is None:
                # The owner is asked for inside: with a lost connection, it changes.
                data = {"key": key, "digest": digest, "run": run, "owner": self._ledger.owner, "state": "begun"}
                self._append(session, {**data, "seq": self._ledger.repeats.last() + 1})
            return known

    def find(self, key: str) -> DedupeKey | None:
        """The present state of a key; None if it is unknown. Raises as `begin`."""
        return self._ledger.repeats.get(key)

    def finish(self, key: str, run: str, state: Literal["kept", "dropped"], session: str | None = None) -> None:
        """Record how the call ended. ``kept``: its run contains the result. ``dropped``: the key is free again."""
        self._append(session, {"key": key, "run": run, "state": state})

    def _append(self, session: str | None, data: dict[str, Json]) -> None:
        self._ledger.append("repeat", data if session is None else {**data, "session": session})


def key_of(session: str | None, key: str) -> str:
    """The name of a key in the record. It is a hash, because the caller's key may contain anything, even a secret."""
    text = "\0".join((session or "", key))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
