"""A call of a tool: one call of the service, its progress, and the question of a call that waits for a person.

A client cancels a call by cancelling its request. That cancels the task here, and so kills all processes of the call. A call that
waits is repeated by the same request: its run is resumed, so nothing that it has already done is done again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from albert_tools.engine.model.bounds import MAX_IDENTIFIER, MAX_TRACE
from albert_tools.engine.model.definition import digest
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import ToolResult
from albert_tools.service import ToolService
from albert_tools.surfaces.mcp.offers import Offers
from albert_tools.surfaces.mcp.progress import Progress, progress_of
from albert_tools.surfaces.mcp.questions import QUESTION, Waiting, ask, can_ask, question_of, read_state, record_answer
from albert_tools.surfaces.mcp.results import call_result, failure_text

#: Calls whose suspended runs are remembered. A forgotten run can still be resumed by `albert runs resume`.
MAX_SUSPENDED = 1000

Context = ServerRequestContext[Any, Any]


class _Call(NamedTuple):
    token: str
    name: str
    arguments: Mapping[str, Any]
    version: str | None

    @property
    def key(self) -> str:
        """Equal for the same call of the same session."""
        return digest([self.token, self.name, self.version, json.dumps(self.arguments, sort_keys=True)])


class Calls:
    """The calls of all clients.

    Args:
        service: Makes the calls.
        offers: The tools that are listed.
        token: Returns the token of the session whose request is handled.
        elicit: Whether the client's user may answer questions.
    """

    def __init__(self, service: ToolService, offers: Offers, token: Callable[[], str], elicit: bool) -> None:
        self._service = service
        self._offers = offers
        self._token = token
        self._elicit = elicit
        #: The run that waits, for each suspended call.
        self._suspended: OrderedDict[str, str] = OrderedDict()

    async def __call__(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Answer ``tools/call``."""
        try:
            return await self._answer(ctx, params)
        except Failure as failure:
            return call_result(ToolResult(params.name, error=failure), {})

    async def _answer(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        token = self._token()
        offer = await self._offers.find(token, params.name)
        version = offer.version if offer is not None else ""
        call = _Call(token, params.name, params.arguments or {}, version or None)
        returned = read_state(params.request_state)
        if returned is not None:
            if returned.run is not None:
                self._remember(call, returned.run)
            answer = (params.input_responses or {}).get(QUESTION)
            answer = answer if isinstance(answer, types.ElicitResult) else None
            if self._elicit and record_answer(self._service, returned.approval, answer, _client(ctx)) is None:
                return _waits(returned.approval)
        async with progress_of(ctx) as progress:
            while True:
                result = await self._made(ctx, call, progress)
                approval = _approval_of(result)
                if approval is None or not (self._elicit and can_ask(ctx)):
                    break
                question = question_of(self._service, approval)
                if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    waiting = Waiting(approval=approval, run=self._suspended.get(call.key))
                    return types.InputRequiredResult(
                        input_requests={QUESTION: types.ElicitRequest(params=question)},
                        request_state=waiting.model_dump_json(),
                    )
                if record_answer(self._service, approval, await ask(ctx, question), _client(ctx)) is None:
                    break
        if approval is not None:
            return _waits(approval, result.error)
        error = result.error
        if error is not None and error.code == "unknown_tool" and error.tool in (None, params.name):
            raise MCPError(types.INVALID_PARAMS, failure_text(error))
        return call_result(result, offer.result if offer is not None else {})

    async def _made(self, ctx: Context, call: _Call, progress: Progress | None) -> ToolResult:
        """Make the call, or resume the run that this call has left waiting."""
        log = progress.log if progress is not None else None
        waiting = self._suspended.pop(call.key, None)
        if waiting is not None:
            try:
                result = await self._service.resume(waiting, log, session=call.token)
            except Failure as failure:
                result = ToolResult(call.name, error=_went_on(failure, waiting))
        else:
            meta: Mapping[str, Any] = ctx.meta or {}
            trace = meta.get("traceparent")
            result = await self._service.invoke(
                call.name,
                call.arguments,
                version=call.version,
                session=call.token,
                request_id=str(ctx.request_id)[:MAX_IDENTIFIER] or None,
                trace=trace if isinstance(trace, str) and 0 < len(trace) <= MAX_TRACE else None,
                log=log,
                watch=progress.watch if progress is not None else None,
            )
        run = result.error.details.get("run") if result.error is not None and result.error.code == "suspended" else None
        if isinstance(run, str):
            self._remember(call, run)
        return result

    def _remember(self, call: _Call, run: str) -> None:
        self._suspended[call.key] = run
        while len(self._suspended) > MAX_SUSPENDED:
            self._suspended.popitem(last=False)


def _went_on(failure: Failure, run: str) -> Failure:
    if failure.code != "exists":
        return failure
    hint = "`list_runs` shows its state; to run the tool once more, make the same call again"
    return failure.copy(message=f"the run {run} of this call went on without it: {failure.message}", hint=hint)


def _approval_of(result: ToolResult) -> str | None:
    """The question that a suspended call waits for."""
    if result.error is None or result.error.code != "suspended":
        return None
    approval = result.error.details.get("approval")
    return approval if isinstance(approval, str) else None


def _waits(approval: str, known: Failure | None = None) -> types.CallToolResult:
    """The answer for a client that can't ask its user: a person answers elsewhere, and then the same call goes through."""
    error = known or Failure("suspended", "the question is still open", details={"approval": approval})
    hint = f"a person answers with `albert approvals answer {approval} once`; then make the same call again"
    return call_result(ToolResult("", error=error.copy(hint=hint)), {})


def _client(ctx: Context) -> str:
    params = ctx.session.client_params
    return repr(params.client_info.name[:100]) if params is not None else "a client"
