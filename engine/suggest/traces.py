"""The calls that sessions made by hand, from the entries of the ledger.

A trace is one session's calls that succeeded, in order. Values are as the record has them, with secrets and long texts replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct, field

from albert_tools.engine.model.definition import Json, ToolDefinition
from albert_tools.engine.model.record_types import Entry
from albert_tools.engine.model.redaction import REDACTED
from albert_tools.engine.model.reserved_names import RESERVED

Path = tuple[str | int, ...]
#: Seconds between two calls after which a new turn begins, where the client names no turns.
GAP = 300.0


class Source(NamedTuple):
    """Where a value was seen: the number of the call in its trace (-1 for one that is not in the trace), the path in its result,
    and the lengths of the lists on the path."""

    call: int
    path: Path
    lengths: tuple[int, ...]


class TracedCall(Struct, eq=False):
    """One call. `arguments` are without those that have their default. Of the `sources` of a value, the first is the earliest."""

    tool: str
    arguments: dict[str, Json]
    sources: dict[str, list[Source]]
    turn: int


class Trace(Struct, eq=False):
    """The calls of a session. `root` is the outermost session around it, and `person` who uses it; empty in a personal home."""

    session: str
    root: str
    person: str
    calls: list[TracedCall] = field(default_factory=list)
    #: The calls' numbers, by id; -1 for a call that no program can make.
    numbers: dict[str, int] = field(default_factory=dict)
    last: tuple[str, float] | None = None


class Traces(Struct, eq=False):
    """All traces. `read` adds entries; the traces that have grown are in `changed`.

    Args:
        definition: The tool of a name as it is now, or None.
        belongs: The outermost session around a session, and its person.
    """

    definition: Callable[[str], ToolDefinition | None]
    belongs: Callable[[str], tuple[str, str]]
    by_session: dict[str, Trace] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    #: The outermost sessions that have seen content from outside.
    outside: set[str] = field(default_factory=set)
    #: Calls whose end has an entry of its own, which was not read yet.
    _open: dict[str, Entry] = field(default_factory=dict)
    _known: dict[str, tuple[str, str]] = field(default_factory=dict)
    _definitions: dict[str, ToolDefinition | None] = field(default_factory=dict)

    def read(self, entries: Iterable[Entry]) -> None:
        """Add the entries ``call`` and ``result``, oldest first."""
        # They may have changed since the last time.
        self._definitions.clear()
        for entry in entries:
            data = entry.data
            if "outside" in data.get("saw", ()):
                self.outside.add(self._belongs(data["session"])[0])
            if entry.kind == "call" and "session" in data and "parent" not in data and data["tool"] not in RESERVED:
                if "ok" in data:
                    self._add(entry, data["ok"])
                else:
                    self._open[data["call"]] = entry
            elif entry.kind == "result" and (begun := self._open.pop(data["call"], None)) is not None:
                self._add(begun, data["ok"])

    def _belongs(self, session: str) -> tuple[str, str]:
        if session not in self._known:
            self._known[session] = self.belongs(session)
        return self._known[session]

    def _add(self, entry: Entry, ok: bool) -> None:
        data, session = entry.data, entry.data["session"]
        trace = self.by_session.get(session)
        if trace is None:
            trace = self.by_session[session] = Trace(session, *self._belongs(session))
        mark, at = str(data.get("turn", "")), datetime.fromisoformat(entry.at).timestamp()
        is_same = trace.last is not None and mark == trace.last[0] and (mark != "" or at - trace.last[1] < GAP)
        turn = (trace.calls[-1].turn if trace.calls else 0) + (not is_same)
        trace.last = (mark, at)
        if data["tool"] not in self._definitions:
            self._definitions[data["tool"]] = self.definition(data["tool"])
        definition = self._definitions[data["tool"]]
        if not ok or "source" in data or definition is None:
            trace.numbers[data["call"]] = -1
            return
        defaults = {p.name: p.default for p in definition.parameters if not p.required}
        given = {k: v for k, v in data["arguments"].items() if k not in defaults or v != defaults[k]}
        sources = {
            path: [Source(trace.numbers.get(call, -1), parsed(at), tuple(lengths)) for call, at, lengths in origins]
            for path, origins in data.get("from", {}).items()
        }
        trace.numbers[data["call"]] = len(trace.calls)
        trace.calls.append(TracedCall(data["tool"], given, sources, turn))
        self.changed.add(session)


@lru_cache(10_000)
def parsed(path: str) -> Path:
    """The parts of a path of an entry."""
    return tuple(int(part) if part.isdigit() else part for part in path.split("/") if part)


def at(value: Json, path: Path) -> Json:
    """The value at a path. What the record does not have in full counts as redacted."""
    try:
        for part in path:
            value = value[part]
    except (LookupError, TypeError):
        return REDACTED
    return value


def keys_of(value: Json) -> list[str | int]:
    """The keys of an object, the indexes of a list, and nothing for other values."""
    return [*sorted(value)] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []


def comparable(value: Json) -> Any:
    """What is equal for equal values. What was redacted is equal to nothing."""
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    if isinstance(value, str):
        return object() if REDACTED in value else value
    return value if isinstance(value, int | float) else ("json", json.dumps(value, sort_keys=True))


_MIXED = re.compile(r"\d.*[A-Za-z]|[A-Za-z].*\d")


def bits(value: Json) -> float:
    """How unlikely it is that two unrelated values are equal, by their form: the information in bits, at most 60."""
    if value is None or isinstance(value, bool):
        return 1.0
    if isinstance(value, int | float):
        return min(60.0, 1.0 + 3.3 * max(0, len(re.sub(r"[^0-9]", "", repr(value)).strip("0")) - 0.5))
    if isinstance(value, str):
        if value == REDACTED:
            return 20.0
        return 3.3 * len(value) if value.isdigit() else min(60.0, 2.2 * len(value) + (8 if _MIXED.search(value) else 0))
    if isinstance(value, dict) and "sha256" in value:
        return 60.0
    return min(60.0, sum(bits(part) for part in (value.values() if isinstance(value, dict) else value)))
