"""Dedupe keys: a call with a key is made once. Every other call with the same key gets the result of the first.

A key belongs to a session and a tool. The ledger gets an entry before the call is made. So if two calls with one key start at the
same time, even in different processes, one is made and the other waits for its result. After a denied call, the key is free
again. If the process that makes the call dies, it is unknown what the call has done. The other calls then get `unknown_outcome`,
and the call is not repeated.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.model.record_types import Entry

#: Seconds that a key is retained.
KEPT_SECONDS = 24 * 3600.0
#: The most keys that are retained. The oldest keys are dropped first.
MAX_KEYS = 100_000

State = Literal["begun", "kept", "dropped"]


@dataclass(slots=True)
class DedupeKey:
    """The state of a key: the digest of its call, the run with the result, and the ledger segment of the calling process.

    `at` is in seconds since 1970.
    """

    digest: str
    run: str
    segment: str
    state: State
    at: float


class DedupeKeyFold:
    """The state of all keys, computed from entries of kind ``repeat``."""

    name = "repeats"
    version = 1
    kinds = frozenset({"repeat"})

    def __init__(self) -> None:
        self.by_key: dict[str, DedupeKey] = {}

    def apply(self, entry: Entry) -> None:
        """Apply an entry."""
        data, at = entry.data, datetime.fromisoformat(entry.at).timestamp()
        key = data["key"]
        known = self.by_key.get(key)
        if data["state"] == "begun":
            # Remove the key first, so that the dictionary stays sorted by time.
            self.by_key.pop(key, None)
            self.by_key[key] = DedupeKey(data["digest"], data["run"], entry.segment, "begun", at)
        elif known is not None and known.run == data["run"]:
            if data["state"] == "dropped":
                del self.by_key[key]
            else:
                known.state = "kept"
        self._forget(at)

    def _forget(self, now: float) -> None:
        while self.by_key:
            oldest = next(iter(self.by_key))
            if len(self.by_key) <= MAX_KEYS and self.by_key[oldest].at > now - KEPT_SECONDS:
                return
            del self.by_key[oldest]

    def dump(self) -> Json:
        """The state as JSON."""
        return {k: [r.digest, r.run, r.segment, r.state, r.at] for k, r in self.by_key.items()}

    def load(self, state: Json) -> None:
        """Replace the state by one from `dump`."""
        self.by_key = {k: DedupeKey(*r) for k, r in state.items()}


class DedupeKeys:
    """The dedupe keys of a home."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock
        self._fold = DedupeKeyFold()
        self._following = ledger.follow(self._fold)

    def begin(self, key: str, digest: str, run: str) -> DedupeKey | None:
        """Claim a key for a call. Returns None if the caller shall make the call; otherwise, the state of the key, which is taken.

        Raises:
            Failure: `io_error`, `damaged`.
        """
        with self._ledger.transaction():
            self._following.look()
            known = self._fold.by_key.get(key)
            if known is not None and known.state == "kept" and known.at <= self._clock() - KEPT_SECONDS:
                known = None
            if known is None:
                self._ledger.append("repeat", {"key": key, "digest": digest, "run": run, "state": "begun"})
            return known

    def find(self, key: str) -> DedupeKey | None:
        """The present state of a key; None if it is unknown."""
        self._following.look()
        return self._fold.by_key.get(key)

    def finish(self, key: str, run: str, state: State) -> None:
        """Record how the call ended. ``kept``: its run contains the result. ``dropped``: the key is free again."""
        self._ledger.append("repeat", {"key": key, "run": run, "state": state})


def key_of(session: str | None, tool: str, key: str) -> str:
    """The name of a key in the record. It is a hash, because the caller's key may contain anything, even a secret."""
    text = "\0".join((session or "", tool, key))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
