"""The ledger entries of one request.

A call that may change something has two entries: ``call`` with the decision, which is on the disk before the call is executed, and
``result``. So every effect has an entry. A call that only reads has one entry, ``call`` with decision and outcome, written when it
ends. If an entry can't be written, the caller gets a denial.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.redaction import recorded, redacted, redacted_text
from albert_tools.engine.model.result import hash_of_output

if TYPE_CHECKING:
    from albert_tools.engine.call.context import Call, Run
    from albert_tools.engine.model.definition import Json
    from albert_tools.engine.model.protocols import Ledger
    from albert_tools.engine.model.result import ToolInvocation, ToolResult

#: The most effects of one call that its entry lists.
MAX_EFFECTS = 100
#: The most characters of an agent's reason that are recorded.
MAX_REASON = 1000


def new_id() -> str:
    """A new id for a run. The ids of its calls are ``RUN:STEP``."""
    return os.urandom(8).hex()


def reason_of(invocation: ToolInvocation) -> str:
    """The agent's reason for the call, redacted and shortened."""
    reason = invocation.reason
    return redacted_text(reason, MAX_REASON) if isinstance(reason, str) else ""


class Recorder:
    """Writes the entries of one request."""

    def __init__(self, ledger: Ledger, invocation: ToolInvocation) -> None:
        self._ledger = ledger
        #: For calls from outside: the caller's own identifiers.
        self._origin = {
            name: redacted_text(str(value), 200)
            for name in ("request_id", "trace")
            if (value := getattr(invocation, name)) is not None
        }

    def decided(self, call: Call, run: Run) -> int:
        """Append ``call`` before the call is executed. Returns the entry's number.

        Raises:
            Failure: `governance_unavailable`.
        """
        return self._demand("call", self._decision(call, run))

    def completed(self, call: Call, run: Run, outcome: Failure | Json, seconds: float) -> int:
        """Append ``call`` with the outcome of a call that has only read. Returns the entry's number.

        Raises:
            Failure: `governance_unavailable`.
        """
        return self._demand("call", {**self._decision(call, run), **_outcome(call, outcome, seconds)})

    async def durable(self, n: int) -> None:
        """Wait until an entry is on the disk.

        Raises:
            Failure: `governance_unavailable`.
        """
        try:
            await self._ledger.adurable(n)
        except Failure as failure:
            raise not_recorded(failure) from None

    def denied(self, call: Call, failure: Failure) -> None:
        """Append ``denied``. The call is not executed, because it is refused, invalid, or names an unknown tool."""
        arguments = call.given
        self._append(
            "denied",
            {
                "call": call.id,
                "tool": redacted_text(call.name, 200),
                "arguments": recorded(arguments, call.target.definition.by_hash)
                if isinstance(arguments, Mapping)
                else None,
                "code": failure.code,
                "rule_id": failure.rule,
                **({"rationale_code": failure.rationale} if failure.denied else {}),
                "message": redacted_text(failure.message),
                **self._caller(call),
            },
        )

    def ended(self, call: Call, outcome: Failure | Json, seconds: float) -> int:
        """Append ``result``: the output of an executed call, or its failure. Returns the entry's number."""
        return self._append("result", {"call": call.id, **_outcome(call, outcome, seconds)})

    def repeated(self, call: Call, result: ToolResult, session: str | None) -> None:
        """Append ``repeated``: the request got the result of an earlier run, `of`. Nothing was executed or charged."""
        data: dict[str, Any] = {
            "call": call.id,
            "tool": call.name,
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

    def settled(self, call: Call, outcome: str, problem: str | None) -> None:
        """Append ``settled``: the outcome of an interrupted call, as its primitive determined it."""
        more = {"problem": redacted_text(problem)} if problem else {}
        self._append("settled", {"call": call.id, "tool": call.name, "outcome": outcome, **more})

    def handed(self, run: str, handle: str, size: int) -> None:
        """Append ``handed``: a large output is stored under a handle. The entry prevents its garbage collection."""
        self._append("handed", {"call": run, "handle": handle, "size_bytes": size})

    def run(self, run: str, state: str, tool: str, **more: Json) -> None:
        """Append ``run``: the new state of a run. Empty values of `more` are left out."""
        self._append("run", {"run": run, "state": state, "tool": tool, **{k: v for k, v in more.items() if v}})

    def _caller(self, call: Call) -> dict[str, str]:
        return {"parent": call.parent} if call.parent else self._origin

    def _decision(self, call: Call, run: Run) -> dict[str, Json]:
        definition, decision = call.target.definition, call.decision
        facts: dict[str, Json] = {
            "call": call.id,
            "tool": definition.name,
            "version": definition.version,
            "arguments": recorded(call.arguments, definition.by_hash),
            "verdict": decision.verdict,
            "rule_id": decision.rule,
            "rationale_code": decision.rationale,
            "mode": call.mode,
            "rules": call.rules.governance.revision,
            **self._caller(call),
        }
        more: dict[str, Json] = {"session": run.session.id, "approval": _approval_of(call)}
        if not call.depth:
            more |= {"run": run.journal.id, "reason": reason_of(run.invocation)}
        return facts | {name: value for name, value in more.items() if value}

    def _demand(self, kind: str, data: Mapping[str, Any]) -> int:
        try:
            return self._ledger.append(kind, data)
        except Failure as failure:
            raise not_recorded(failure) from None

    def _append(self, kind: str, data: Mapping[str, Any]) -> int:
        try:
            return self._ledger.append(kind, data)
        except Failure:
            # The call has ended and its result goes to the caller. The ledger accepts no more entries, so the next call is denied.
            return 0


def _outcome(call: Call, outcome: Failure | Json, seconds: float) -> dict[str, Json]:
    effects = call.report.effects
    data: dict[str, Json] = {"ok": not isinstance(outcome, Failure), "ms": round(seconds * 1000, 3)}
    if isinstance(outcome, Failure):
        data |= {"code": outcome.code, "message": redacted_text(outcome.message)}
    else:
        data["result_hash"] = hash_of_output(outcome)
    if effects:
        data["effects"] = [redacted(e.as_dict()) for e in effects[:MAX_EFFECTS]]
    if len(effects) > MAX_EFFECTS:
        data["more_effects"] = len(effects) - MAX_EFFECTS
    return data


def _approval_of(call: Call) -> str | None:
    if call.approval is not None:
        return call.approval.id
    return call.begun_before.approval if call.begun_before is not None else None


def not_recorded(failure: Failure) -> Failure:
    """The denial of a call whose entry can't be written."""
    return Failure(
        "governance_unavailable",
        f"the call can't be recorded, so it is denied: {failure.message}",
        hint=failure.hint or "repair the folder of the record (`albert doctor` shows where it is)",
        rule="unrecorded",
    )
