"""The record of every call: what was asked and how it was decided, before anything is done; what came of it, after.

A call that may change something waits until its decision is on the disk. When the record can't be kept, nothing is done: a call
that nobody could ever account for is denied.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.redaction import recorded, redacted, redacted_text
from albert_tools.engine.model.result import hash_of_output

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import Json, ToolDefinition
    from albert_tools.engine.model.protocols import Ledger
    from albert_tools.engine.model.record_types import Mark
    from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
    from albert_tools.engine.policy.decision import Decision

#: Effects of one call that its entry lists.
MAX_EFFECTS = 100
#: Characters of an agent's reason that are kept.
MAX_REASON = 1000


class CallId(NamedTuple):
    """A call in the record: its own id, and that of the call it was made by."""

    id: str
    parent: str | None = None


def new_id() -> str:
    """The id of a call from outside; those made by it have their number behind it."""
    return os.urandom(8).hex()


def reason_of(invocation: ToolInvocation) -> str:
    """What the agent says the call is for, as it may be shown and kept."""
    reason = invocation.reason
    return redacted_text(reason, MAX_REASON) if isinstance(reason, str) else ""


class Recorder:
    """Writes the entries of one request. Without a ledger it writes nothing."""

    def __init__(self, ledger: Ledger | None, invocation: ToolInvocation) -> None:
        self._ledger = ledger
        self._of = {
            name: redacted_text(str(value), 200)
            for name in ("request_id", "trace")
            if (value := getattr(invocation, name)) is not None
        }

    def decided(
        self,
        call: CallId,
        definition: ToolDefinition,
        arguments: Mapping[str, Any],
        decision: Decision,
        mode: str,
        **more: Json,
    ) -> Mark | None:
        """A call that is about to be made; `more` says by which rules, in which session and run, and by whose approval.

        Raises:
            Failure: `governance_unavailable`.
        """
        if self._ledger is None:
            return None
        data = {
            "call": call.id,
            "tool": definition.name,
            "version": definition.version,
            "arguments": recorded(arguments, definition.by_hash),
            "verdict": decision.verdict,
            "rule_id": decision.rule,
            "rationale_code": decision.rationale,
            "mode": mode,
            **({"parent": call.parent} if call.parent else self._of),
            **{name: value for name, value in more.items() if value},
        }
        try:
            return self._ledger.append("call", data)
        except Failure as failure:
            raise unkept(failure) from None

    async def durable(self, mark: Mark | None) -> None:
        """Wait until an entry is on the disk.

        Raises:
            Failure: `governance_unavailable`.
        """
        if self._ledger is None or mark is None:
            return
        try:
            await self._ledger.adurable(mark)
        except Failure as failure:
            raise unkept(failure) from None

    def denied(self, call: CallId, tool: str, arguments: Any, failure: Failure, by_hash: Sequence[str] = ()) -> None:
        """A call that is not made: refused, unknown, or invalid. What can't be written down is denied all the same."""
        self._append(
            "denied",
            {
                "call": call.id,
                "tool": redacted_text(str(tool), 200),
                "arguments": recorded(arguments, by_hash) if isinstance(arguments, Mapping) else None,
                "code": failure.code,
                "rule_id": failure.rule,
                **({"rationale_code": failure.rationale} if failure.denied else {}),
                "message": redacted_text(failure.message),
                **({"parent": call.parent} if call.parent else self._of),
            },
        )

    def ended(self, call: CallId, came: Failure | Json, effects: Sequence[Effect], seconds: float) -> None:
        """What came of a call that was made: its output, or its failure."""
        if self._ledger is None:
            return
        data: dict[str, Any] = {"call": call.id, "ok": not isinstance(came, Failure), "ms": round(seconds * 1000, 3)}
        if isinstance(came, Failure):
            data |= {"code": came.code, "message": redacted_text(came.message)}
        else:
            data["result_hash"] = hash_of_output(came)
        if effects:
            data["effects"] = [redacted(e.as_dict()) for e in effects[:MAX_EFFECTS]]
        if len(effects) > MAX_EFFECTS:
            data["more_effects"] = len(effects) - MAX_EFFECTS
        self._append("result", data)

    def repeated(self, call: CallId, tool: str, result: ToolResult, session: str | None) -> None:
        """A request whose answer is that of an earlier one, `of`: nothing was done, and nothing is charged."""
        data: dict[str, Any] = {
            "call": call.id,
            "tool": tool,
            "of": result.run_id,
            "ok": result.error is None,
            **self._of,
        }
        if session is not None:
            data["session"] = session
        if result.error is not None:
            data["code"] = result.error.code
        else:
            data["result_hash"] = hash_of_output(result.output)
        self._append("repeated", data)

    def settled(self, call: CallId, tool: str, outcome: str, problem: str | None) -> None:
        """What its primitive says of a call that was cut short, as its run goes on."""
        more = {"problem": redacted_text(problem)} if problem else {}
        self._append("settled", {"call": call.id, "tool": tool, "outcome": outcome, **more})

    def handed(self, call: str, handle: str, size: int) -> None:
        """An output that is kept and handed over in part: what is named here isn't collected."""
        self._append("handed", {"call": call, "handle": handle, "size_bytes": size})

    def run(self, run: str, state: str, tool: str, **more: Json) -> None:
        """What has become of a run."""
        self._append("run", {"run": run, "state": state, "tool": tool, **{k: v for k, v in more.items() if v}})

    def _append(self, kind: str, data: Mapping[str, Any]) -> None:
        if self._ledger is None:
            return
        try:
            self._ledger.append(kind, data)
        except Failure:
            # What was done is done and is told to the caller; from here on the log takes no more, so nothing else will be.
            return


def unkept(failure: Failure) -> Failure:
    """The denial that it comes to when the record can't be kept."""
    return Failure(
        "governance_unavailable",
        f"the call can't be recorded, so it is denied: {failure.message}",
        hint="make room, or mend the folder of the log (`albert doctor` says where the state is)",
        rule="unrecorded",
    )
