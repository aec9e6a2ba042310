"""What goes into the pipeline and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """One request to run a tool. `version` pins a composite; the rest says on whose behalf, for the records.

    `dedupe_key` makes a repeat of the same call give the recorded result instead of doing it twice.
    """

    tool: str
    arguments: Mapping[str, Json]
    version: str | None = None
    session: str | None = None
    request_id: str | None = None
    dedupe_key: str | None = None
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """Something a primitive did: ``read``, ``write``, …; `facts` names it (path, size_bytes, sha256, …)."""

    kind: str
    tool: str
    facts: dict[str, Json]

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        return {"kind": self.kind, "tool": self.tool, **self.facts}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to an invocation: an output, or an error. Times are seconds.

    `effects` are what was done, in order, also when it failed later on; `log` is what the program printed.
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
    #: When the call was made: ISO 8601, UTC.
    timestamp_utc: str = ""
    #: The verdict of the rules on the call itself: ``{verdict, allowed, rule_id, rationale_code, message}``.
    policy: dict[str, Json] | None = None
    details: dict[str, Json] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there is an output."""
        return self.error is None

    @property
    def result_hash(self) -> str | None:
        """``b3:`` and the BLAKE3 (hex) of the output's canonical JSON; None when there is no output."""
        from albert_tools.engine.model.hashing import result_hash

        return result_hash(self.output) if self.error is None else None

    def value(self) -> Json:
        """The output.

        Raises:
            Failure: the error, when there is one.
        """
        if self.error is not None:
            raise self.error
        return self.output

    unwrap = value

    def simple(self) -> dict[str, Json]:
        """``{success, output, error}``: what many callers know; the error is its sentence."""
        return {
            "success": self.ok,
            "output": self.output,
            "error": None if self.error is None else self.error.message,
        }

    def strict(self, family: str = "") -> dict[str, Json]:
        """The form that says everything, always: ``{timestamp_utc, ok, tool, action, policy, output, effects, error}``.

        `family` is the family of the tool that was called; `action` is the tool itself.
        """
        denied = self.error is not None and self.error.denied
        policy = self.policy or {"rule_id": self.error.rule if self.error is not None else None, "rationale_code": None}
        return {
            "timestamp_utc": self.timestamp_utc,
            "ok": self.ok,
            "tool": family or self.tool,
            "action": self.tool,
            "latency_ms": round(self.seconds * 1000, 3),
            "policy": {
                "allowed": not denied,
                "rule_id": policy["rule_id"],
                "rationale_code": policy["rationale_code"],
                "message": self.error.message if denied and self.error is not None else "",
            },
            "output": {"value": self.output, "truncated": self.truncated},
            "effects": [e.as_dict() for e in self.effects],
            "error": None if self.error is None else {"type": self.error.kind, "message": self.error.message},
            "result_hash": self.result_hash,
            "request_id": self.request_id,
        }

    @property
    def truncated(self) -> bool:
        """Whether the output says of itself that it is not the whole."""
        return isinstance(self.output, Mapping) and self.output.get("truncated") is True

    def as_dict(self) -> dict[str, Json]:
        """``{"ok": true, "output": …}`` or ``{"ok": false, "error": {…}}``, with what else is known."""
        found: dict[str, Json] = {"ok": self.ok, "tool": self.tool, "version": self.version}
        if self.error is None:
            found["output"] = self.output
        else:
            found["error"] = self.error.as_dict()
        if self.timestamp_utc:
            found["timestamp_utc"] = self.timestamp_utc
        if self.policy is not None:
            found["policy"] = self.policy
        found["effects"] = [e.as_dict() for e in self.effects]
        found["log"] = self.log
        found["seconds"] = round(self.seconds, 6)
        found["calls"] = self.calls
        if self.request_id is not None:
            found["request_id"] = self.request_id
        return found
