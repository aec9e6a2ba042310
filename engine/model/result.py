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

    def as_dict(self) -> dict[str, Json]:
        """``{"ok": true, "output": …}`` or ``{"ok": false, "error": {…}}``, with what else is known."""
        found: dict[str, Json] = {"ok": self.ok, "tool": self.tool, "version": self.version}
        if self.error is None:
            found["output"] = self.output
        else:
            found["error"] = self.error.as_dict()
        found["effects"] = [e.as_dict() for e in self.effects]
        found["log"] = self.log
        found["seconds"] = round(self.seconds, 6)
        found["calls"] = self.calls
        if self.request_id is not None:
            found["request_id"] = self.request_id
        return found
