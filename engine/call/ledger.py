"""The ledger entries of one request: the decision before a call, and the result after it.

A call that may change something waits until its decision is on the disk. If the entry can't be written, the call is denied. So
every effect has an entry in the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.redaction import recorded, redacted, redacted_text
from albert_tools.engine.model.result import hash_of_output

if TYPE_CHECKING:
    from albert_tools.engine.model.definition import Json, ToolDefinition
    from albert_tools.engine.model.protocols import Ledger
    from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
    from albert_tools.engine.policy.decision import Decision

#: The most effects of one call that its entry lists.
MAX_EFFECTS = 100
#: The most characters of an agent's reason that are recorded.
MAX_REASON = 1000


class CallId(Protocol):
    """The identity of a call in the ledger (`engine.call.context.Call`): its id, and the id of its caller if there is one."""

    id: str
    parent: str | None


def new_id() -> str:
    """A new id for a run. The ids of its calls are ``RUN:STEP``."""
    return os.urandom(8).hex()


def reason_of(invocation: ToolInvocation) -> str:
    """The agent's reason for the call, redacted and shortened."""
    reason = invocation.reason
    return redacted_text(reason, MAX_REASON) if isinstance(reason, str) else ""


class Recorder:
    """Writes the entries of one request. Without a ledger it writes nothing."""

    def __init__(self, ledger: Ledger | None, invocation: ToolInvocation) -> None:
        self._ledger = ledger
        #: For calls from outside: the caller's own identifiers.
        self._origin = {
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
    ) -> int | None:
        """Append ``call`` before the call is executed. `more` contains rules, session, run and approval. Empty values are left out.

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
            **self._caller(call),
            **{name: value for name, value in more.items() if value},
        }
        try:
            return self._ledger.append("call", data)
        except Failure as failure:
            raise not_recorded(failure) from None

    async def durable(self, n: int | None) -> None:
        """Wait until an entry is on the disk.

        Raises:
            Failure: `governance_unavailable`.
        """
        if self._ledger is None or n is None:
            return
        try:
            await self._ledger.adurable(n)
        except Failure as failure:
            raise not_recorded(failure) from None

    def denied(self, call: CallId, tool: str, arguments: Any, failure: Failure, by_hash: Sequence[str] = ()) -> None:
        """Append ``denied``. The call is not executed, because it is refused, invalid, or names an unknown tool."""
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
                **self._caller(call),
            },
        )

    def ended(self, call: CallId, outcome: Failure | Json, effects: Sequence[Effect], seconds: float) -> None:
        """Append ``result``: the output of an executed call, or its failure."""
        if self._ledger is None:
            return
        data: dict[str, Any] = {"call": call.id, "ok": not isinstance(outcome, Failure), "ms": round(seconds * 1000, 3)}
        if isinstance(outcome, Failure):
            data |= {"code": outcome.code, "message": redacted_text(outcome.message)}
        else:
            data["result_hash"] = hash_of_output(outcome)
        if effects:
            data["effects"] = [redacted(e.as_dict()) for e in effects[:MAX_EFFECTS]]
        if len(effects) > MAX_EFFECTS:
            data["more_effects"] = len(effects) - MAX_EFFECTS
        self._append("result", data)

    def repeated(self, call: CallId, tool: str, result: ToolResult, session: str | None) -> None:
        """Append ``repeated``: the request got the result of an earlier run, `of`. Nothing was executed or charged."""
        data: dict[str, Any] = {
            "call": call.id,
            "tool": tool,
            "of": result.run_id,
            "ok": result.error is None,
            **self._origin,
        }
        if session is not None:
            data["session"] = session
        if result.error is not None:
            data["code"] = result.error.code
        else:
            data["result_hash"] = hash_of_output(result.output)
        self._append("repeated", data)

    def settled(self, call: CallId, tool: str, outcome: str, problem: str | None) -> None:
        """Append ``settled``: the outcome of an interrupted call, as its primitive determined it."""
        more = {"problem": redacted_text(problem)} if problem else {}
        self._append("settled", {"call": call.id, "tool": tool, "outcome": outcome, **more})

    def handed(self, run: str, handle: str, size: int) -> None:
        """Append ``handed``: a large output is stored under a handle. The entry prevents its garbage collection."""
        self._append("handed", {"call": run, "handle": handle, "size_bytes": size})

    def run(self, run: str, state: str, tool: str, **more: Json) -> None:
        """Append ``run``: the new state of a run. Empty values of `more` are left out."""
        self._append("run", {"run": run, "state": state, "tool": tool, **{k: v for k, v in more.items() if v}})

    def _caller(self, call: CallId) -> dict[str, str]:
        return {"parent": call.parent} if call.parent else self._origin

    def _append(self, kind: str, data: Mapping[str, Any]) -> None:
        if self._ledger is None:
            return
        try:
            self._ledger.append(kind, data)
        except Failure:
            # The call has ended and its result goes to the caller. The ledger accepts no more entries, so the next call is denied.
            return


def not_recorded(failure: Failure) -> Failure:
    """The denial of a call whose entry can't be written."""
    return Failure(
        "governance_unavailable",
        f"the call can't be recorded, so it is denied: {failure.message}",
        hint=failure.hint or "repair the folder of the record (`albert doctor` shows where it is)",
        rule="unrecorded",
    )
