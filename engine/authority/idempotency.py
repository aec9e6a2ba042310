"""The same call again: under the same key a call is made once, and whoever repeats it gets the first one's result.

Keys belong to a session and a tool. What was begun is an entry of the log before anything is done, so of two at once, in
whatever processes, one does it and the other waits for its result. What was denied is as if it had not been asked. Where the
one who did it has died, nobody knows what was done: that is the answer, and nothing is done again.
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

#: Seconds that a key is remembered.
KEPT_SECONDS = 24 * 3600.0
#: Keys that are remembered; the oldest go first.
MAX_KEYS = 100_000

State = Literal["begun", "kept", "dropped"]


@dataclass(slots=True)
class Repeat:
    """What is known of a key: the digest of the call, the run that has its result, and who began it."""

    digest: str
    run: str
    segment: str
    state: State
    at: float


class RepeatsFold:
    """The keys: kind ``repeat``."""

    name = "repeats"
    version = 1
    kinds = frozenset({"repeat"})

    def __init__(self) -> None:
        self.by_key: dict[str, Repeat] = {}

    def apply(self, entry: Entry) -> None:
        """Take an entry in."""
        data, at = entry.data, datetime.fromisoformat(entry.at).timestamp()
        key = data["key"]
        if data["state"] == "begun":
            self.by_key.pop(key, None)
            self.by_key[key] = Repeat(data["digest"], data["run"], entry.segment, "begun", at)
        elif data["state"] == "dropped":
            if key in self.by_key and self.by_key[key].run == data["run"]:
                del self.by_key[key]
        elif key in self.by_key and self.by_key[key].run == data["run"]:
            self.by_key[key].state = "kept"
        while self.by_key:
            oldest = next(iter(self.by_key))
            if len(self.by_key) <= MAX_KEYS and self.by_key[oldest].at > at - KEPT_SECONDS:
                break
            del self.by_key[oldest]

    def dump(self) -> Json:
        """The state as JSON."""
        return {k: [r.digest, r.run, r.segment, r.state, r.at] for k, r in self.by_key.items()}

    def load(self, state: Json) -> None:
        """Be in this state."""
        self.by_key = {k: Repeat(*r) for k, r in state.items()}


class Repeats:
    """What was called under which key."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock
        self._fold = RepeatsFold()
        self._following = ledger.follow(self._fold)

    def begin(self, key: str, digest: str, run: str) -> Repeat | None:
        """None when the call is to be made, and then it is begun; else what there is under the key.

        Raises:
            Failure: `io_error`, `damaged`.
        """
        with self._ledger.exclusively():
            self._following.look()
            known = self._fold.by_key.get(key)
            if known is not None and known.state == "kept" and known.at <= self._clock() - KEPT_SECONDS:
                known = None
            if known is None:
                self._ledger.append("repeat", {"key": key, "digest": digest, "run": run, "state": "begun"})
            return known

    def look(self, key: str) -> Repeat | None:
        """What there is under a key now."""
        self._following.look()
        return self._fold.by_key.get(key)

    def say(self, key: str, run: str, state: State) -> None:
        """How a call that was begun has ended: its result is ``kept`` in its run, or it is ``dropped``, as if never made."""
        self._ledger.append("repeat", {"key": key, "run": run, "state": state})


def key_of(session: str | None, tool: str, key: str) -> str:
    """The name that a caller's key has in the records: a hash, for a key may be anything, a secret too."""
    text = "\0".join((session or "", tool, key))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
