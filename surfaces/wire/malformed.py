"""Ledger entries for requests that are not calls: bytes that don't parse, and requests that break a rule or name no active session.

The ledger gets their hash and length. An entry is charged to the session that has sent the request. Everyone who reaches the server
can send one without a session, so the number of these entries is limited.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from blake3 import blake3

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.model.telemetry import new_span, traceparent

#: The most entries in a minute. The next entry after that counts the requests without an entry.
MAX_A_MINUTE = 60
#: The most violations that an entry lists.
MAX_LISTED = 10


class MalformedRequests:
    """Records malformed requests."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._minute, self._count, self._skipped = 0, 0, 0

    def record(self, raw: bytes, rules: list[str], trace: str | None, session: str | None = None) -> None:
        """Append an entry. `rules` are the broken rules, with their fields; empty if the bytes don't parse. `trace` is the client's
        traceparent, if it has sent one. The entry is charged to `session`; without one, only so many are written in a minute."""
        if session is None and self._is_too_many():
            return
        data: dict[str, Any] = {
            "hash": f"b3:{blake3(raw).hexdigest()}",
            "size_bytes": len(raw),
            "trace": traceparent(new_span(None, trace)),
        }
        if rules:
            data["violations"] = rules[:MAX_LISTED]
        if session is not None:
            data["session"] = session
        elif self._skipped:
            data["skipped"], self._skipped = self._skipped, 0
        # The request is denied also if the ledger can't be written.
        with suppress(Failure):
            self._ledger.append("malformed", data)

    def _is_too_many(self) -> bool:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        is_too_many = self._count > MAX_A_MINUTE
        self._skipped += is_too_many
        return is_too_many
