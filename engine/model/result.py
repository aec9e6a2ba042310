"""The input of the pipeline, `ToolInvocation`, and its output, `ToolResult`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any

from blake3 import blake3
from msgspec import Struct, field
from msgspec.json import Encoder
from msgspec.structs import force_setattr

from albert_tools.engine.model.bounds import MAX_DEDUPE_KEY, MAX_IDENTIFIER, MAX_REASON_GIVEN, MAX_TRACE
from albert_tools.engine.model.definition import Json, Schema, ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.validation import Violation, violations

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_IDENTIFIER}
_NAME_OR_NONE: Schema = {**_NAME, "type": ["string", "null"]}

#: The schemas of an invocation's fields. The arguments are checked against the tool's own schema.
INVOCATION_FIELDS: dict[str, Schema] = {
    "tool": _NAME,
    "version": _NAME_OR_NONE,
    "session": _NAME_OR_NONE,
    "request_id": _NAME_OR_NONE,
    "dedupe_key": {"type": ["string", "null"], "maxLength": MAX_DEDUPE_KEY},
    "trace": {**_NAME_OR_NONE, "maxLength": MAX_TRACE},
    "reason": {"type": ["string", "null"], "maxLength": MAX_REASON_GIVEN},
    "turn": _NAME_OR_NONE,
}

_sorted_json = Encoder(order="sorted").encode

_OPTIONAL = frozenset(name for name, schema in INVOCATION_FIELDS.items() if "null" in schema["type"])
_MAY_BE_EMPTY = frozenset({"dedupe_key", "reason"})


class ToolInvocation(Struct, frozen=True):
    """One request to run a tool. `version` selects a version of a composite.

    If the same `dedupe_key` was used before, the recorded result is returned and nothing is executed. An empty key has no effect.
    """

    tool: str
    arguments: Mapping[str, Json]
    version: str | None = None
    session: str | None = None
    request_id: str | None = None
    dedupe_key: str | None = None
    trace: str | None = None
    #: The purpose of the call, as the agent states it. A person who approves the call sees it. No rule uses it.
    reason: str | None = None
    #: The same text for all calls between two messages of the agent's user. The record contains it, and no rule uses it.
    turn: str | None = None

    def violations(self) -> list[Violation]:
        """All errors in the fields, except in the arguments."""
        field_violations: list[Violation] = []
        if type(self.tool) is not str or not _good_name(self.tool[: MAX_IDENTIFIER + 1]):
            field_violations += violations(self.tool, _NAME, "tool")
        values = _values(self)
        if values == _NOT_GIVEN:
            return field_violations  # The usual case.
        for name, value in zip(_FIELDS, values, strict=True):
            if not ((value is None and name in _OPTIONAL) or (value == "" and name in _MAY_BE_EMPTY)):
                field_violations += violations(value, INVOCATION_FIELDS[name], name)
        return field_violations


_FIELDS = tuple(name for name in INVOCATION_FIELDS if name != "tool")
_values = attrgetter(*_FIELDS)
_NOT_GIVEN = _values(ToolInvocation("", {}))


@lru_cache(1024)
def _good_name(tool: str) -> bool:
    """Whether the text can be a tool's name. The result is cached, because it is needed for every call."""
    return not violations(tool, _NAME, "tool")


def may_change(kind: str, facts: Mapping[str, Any]) -> bool:
    """Whether an effect may have changed something: not a read, nor a request that only asks, nor a look at the configuration of
    git by Albert Tools itself."""
    asks = kind == "network" and (facts.get("method") in ("GET", "HEAD") or facts.get("refused"))
    return kind != "read" and not asks and not (kind == "execute" and facts.get("operation") == "CONFIG")


class Effect(Struct, frozen=True):
    """An effect of a call: its kind (``read``, ``write``, …) and facts about it (path, size_bytes, sha256, …)."""

    kind: str
    tool: str
    facts: dict[str, Json]

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        return {"kind": self.kind, "tool": self.tool, **self.facts}

    def strict(self) -> dict[str, Json]:
        """``{path, size_bytes, sha256, kind, tool, …}``. The first five keys are always present; a missing fact is null."""
        named = {name: self.facts.get(name) for name in ("path", "size_bytes", "sha256")}
        return {**named, "kind": self.kind, "tool": self.tool, **self.facts}


#: The `policy` of a result whose call was refused before the rules could judge it, because its arguments are invalid, for example.
UNJUDGED_POLICY: dict[str, Json] = {
    "verdict": "deny",
    "allowed": False,
    "rule_id": "unjudged",
    "rationale_code": "unjudged",
    "message": "no rule has judged the call",
}


class ToolResult(Struct, frozen=True):
    """The answer to an invocation: an output or an error. Times are in seconds.

    `effects` are in order. They include the effects before a failure. `log` contains the text that the program printed.
    """

    tool: str
    output: Json = None
    error: Failure | None = None
    version: str = ""
    request_id: str | None = None
    effects: tuple[Effect, ...] = ()
    log: str = ""
    seconds: float = 0.0
    own_seconds: float = 0.0
    calls: int = 0
    repeated: bool = False
    #: Whether the output is incomplete (`is_incomplete`), or was stored because it is large.
    truncated: bool = False
    #: When the call was made (ISO 8601, UTC).
    timestamp_utc: str = ""
    #: The decision: ``{verdict, allowed, rule_id, rationale_code, message}``. If the error is a denial, perhaps of a nested call,
    #: it is this denial. Otherwise it is the decision about the call itself. `allowed` is true only for a call that was executed.
    policy: dict[str, Json] = field(default_factory=UNJUDGED_POLICY.copy)
    #: The family of the tool, for `strict`.
    family: str = ""
    #: The amounts that the call used from the caller's budget: ``calls``, ``wall_seconds``, ``bytes_written``, ``network_bytes``, …
    budget_consumed: dict[str, int | float] = field(default_factory=dict)
    #: The ids of the call in a trace, in hex.
    trace_id: str | None = None
    span_id: str | None = None
    #: The run whose journal contains the call, if there is such a run.
    run_id: str | None = None
    #: ``{"changed": {message, by, at, before}}`` if somebody else has changed the composite; see `changed_by_others`.
    metadata: dict[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.error is not None and self.error.denied:
            force_setattr(self, "policy", denial_policy(self.error))

    @property
    def ok(self) -> bool:
        """Whether the result is an output and not an error."""
        return self.error is None

    #: The same as `ok`, as other protocols name it.
    success = ok

    @property
    def result_hash(self) -> str | None:
        """`hash_of_output` of the output; None if there is an error."""
        return hash_of_output(self.output) if self.error is None else None

    def value(self) -> Json:
        """The output.

        Raises:
            Failure: The error, if there is one.
        """
        if self.error is not None:
            raise self.error
        return self.output

    def simple(self) -> dict[str, Json]:
        """``{success, output, error}``, a form that many callers know. The error is its message."""
        return {
            "success": self.ok,
            "output": self.output,
            "error": None if self.error is None else self.error.message,
        }

    def strict(self) -> dict[str, Json]:
        """The form in which all keys are always present: ``{timestamp_utc, ok, tool, action, policy, output, effects, error, …}``.

        ``tool`` is the family of the tool, and ``action`` is the tool itself.
        """
        return {
            "timestamp_utc": self.timestamp_utc,
            "ok": self.ok,
            "tool": self.family or self.tool,
            "action": self.tool,
            "latency_ms": round(self.seconds * 1000, 3),
            "policy": {name: self.policy[name] for name in ("allowed", "rule_id", "rationale_code", "message")},
            "output": {"value": self.output, "truncated": self.truncated},
            "effects": [e.strict() for e in self.effects],
            "error": None if self.error is None else {"type": self.error.kind, "message": self.error.message},
            "result_hash": self.result_hash,
            "request_id": self.request_id,
            "budget_consumed": self.budget_consumed,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "run_id": self.run_id,
            "metadata": self.metadata,
        }

    def as_dict(self) -> dict[str, Json]:
        """``{"ok": true, "output": …}`` or ``{"ok": false, "error": {…}}``, and the other keys that have a value."""
        fields: dict[str, Json] = {"ok": self.ok, "tool": self.tool, "version": self.version}
        if self.error is None:
            fields["output"] = self.output
        else:
            fields["error"] = self.error.as_dict()
        if self.timestamp_utc:
            fields["timestamp_utc"] = self.timestamp_utc
        fields["policy"] = self.policy
        fields["effects"] = [e.as_dict() for e in self.effects]
        fields["log"] = self.log
        fields["seconds"] = round(self.seconds, 6)
        fields["calls"] = self.calls
        for name in ("request_id", "trace_id", "span_id", "run_id", "budget_consumed", "metadata"):
            if getattr(self, name) not in (None, {}):
                fields[name] = getattr(self, name)
        return fields


def denial_policy(denial: Failure) -> dict[str, Json]:
    """The `policy` of a result whose error is this denial."""
    return {
        "verdict": "deny",
        "allowed": False,
        "rule_id": denial.rule,
        "rationale_code": denial.rationale,
        "message": denial.message,
    }


def is_incomplete(definition: ToolDefinition, output: Json, error: Failure | None) -> bool:
    """Whether a tool returned only a part of its output: a primitive says so in its result, or a killed command in the error.

    A composite may return any value, also one of this form.
    """
    if definition.kind == "composite":
        return False
    if error is not None:
        return "output" in error.details
    declared = "truncated" in definition.result.get("properties", {})
    return declared and isinstance(output, Mapping) and output.get("truncated") is True


def hash_of_output(output: Json) -> str:
    """The hash of an output in the record: ``b3:`` and the BLAKE3 (hex) of its canonical JSON."""
    return f"b3:{blake3(_sorted_json(output)).hexdigest()}"
