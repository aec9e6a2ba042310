"""Calls that wait for a person. When an agent makes the same call again, its run is resumed: what it has done is not done again."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from albert_tools.engine.call.context import Log
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import ToolResult
from albert_tools.engine.service import ToolService

#: The most calls of a client whose runs are remembered, and the most clients. `albert runs resume` resumes a forgotten run.
MAX_SUSPENDED, MAX_CLIENTS = 200, 1000


class SuspendedCalls:
    """The calls of the agents of one surface."""

    def __init__(self) -> None:
        #: For each client (see `ServiceContext.client_of`) the run that waits, for each suspended call.
        self._runs: OrderedDict[str, OrderedDict[str, str]] = OrderedDict()

    async def invoke(
        self,
        service: ToolService,
        name: str,
        arguments: Mapping[str, Any],
        *,
        version: str | None,
        session: str,
        run: str | None = None,
        log: Log | None = None,
        **options: Any,
    ) -> ToolResult:
        """Make a call, or resume the run that the same call of the session has left waiting.

        `run` is this run, if the caller knows it. The other arguments are those of `ToolService.invoke`. The hint of a call that
        waits names the command that answers its question.
        """
        key = _key(session, name, version, arguments)
        remembered = self._take(service, session, key) if self._runs else None
        run = run or remembered
        if run is None:
            result = await service.invoke(name, arguments, version=version, session=session, log=log, **options)
        else:
            try:
                result = await service.resume(run, log, session=session)
            except Failure as failure:
                result = ToolResult(name, error=_went_on(failure, run))
        error = result.error
        if error is None or error.code != "suspended":
            return result
        if key and "run" in error.details:
            self._remember(service.client_of(session) or session, key, error.details["run"])
        return replace(result, error=waiting(error))

    def _take(self, service: ToolService, session: str, key: str) -> str | None:
        client = service.client_of(session) or session
        runs = self._runs.get(client)
        return None if runs is None else runs.pop(key, None)

    def _remember(self, client: str, key: str, run: str) -> None:
        runs = self._runs.setdefault(client, OrderedDict())
        runs[key] = run
        self._runs.move_to_end(client)
        for each, most in ((runs, MAX_SUSPENDED), (self._runs, MAX_CLIENTS)):
            while len(each) > most:
                each.popitem(last=False)


def waiting(failure: Failure) -> Failure:
    """The failure of a call that waits, with the hint for its agent."""
    approval = failure.details.get("approval")
    if approval is None:
        return failure
    return failure.copy(
        hint=f"a person answers with `albert approvals answer {approval} once`; then make the same call again"
    )


def _key(*call: Any) -> str:
    """Equal for equal calls; empty if the arguments are not JSON. The service refuses such a call, so it never waits."""
    try:
        return sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()
    except (TypeError, ValueError, RecursionError):
        return ""


def _went_on(failure: Failure, run: str) -> Failure:
    if failure.code != "exists":
        return failure
    hint = "`list_runs` shows its state; to run the tool once more, make the same call again"
    return failure.copy(message=f"the run {run} of this call went on without it: {failure.message}", hint=hint)
