"""A call of a tool: one call of the service, its progress, and the question of a call that waits for a person.

A client cancels a call by cancelling its request. That cancels the task here, and so kills all processes of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from albert_tools.engine.agent.suspended_calls import SuspendedCalls, waiting
from albert_tools.engine.agent.texts import failure_text
from albert_tools.engine.model.bounds import MAX_IDENTIFIER, MAX_TRACE
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import ToolResult
from albert_tools.service import ToolService
from albert_tools.surfaces.mcp.offers import Offers
from albert_tools.surfaces.mcp.progress import progress_of
from albert_tools.surfaces.mcp.questions import QUESTION, Waiting, ask, can_ask, question_of, read_state, record_answer
from albert_tools.surfaces.mcp.results import call_result

Context = ServerRequestContext[Any, Any]
#: The key in ``_meta`` of a request whose text is the same for all calls between two messages of the client's user.
TURN = "albert-tools/turn"


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
        self._suspended = SuspendedCalls()

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
        offer = await self._offers.find(params.name)
        returned = read_state(params.request_state)
        if returned is not None and self._elicit:
            answer = (params.input_responses or {}).get(QUESTION)
            answer = answer if isinstance(answer, types.ElicitResult) else None
            if record_answer(self._service, returned.approval, answer, _client(ctx)) is None:
                raise waiting(
                    Failure("suspended", "the question is still open", details={"approval": returned.approval})
                )
        meta = ctx.meta or {}
        trace, turn = meta.get("traceparent"), meta.get(TURN)
        async with progress_of(ctx) as (log, watch):
            while True:
                result = await self._suspended.invoke(
                    self._service,
                    params.name,
                    params.arguments or {},
                    version=offer.version if offer is not None else None,
                    session=token,
                    run=returned.run if returned is not None else None,
                    request_id=str(ctx.request_id)[:MAX_IDENTIFIER] or None,
                    trace=trace if isinstance(trace, str) and 0 < len(trace) <= MAX_TRACE else None,
                    turn=turn if isinstance(turn, str) and 0 < len(turn) <= MAX_IDENTIFIER else None,
                    log=log,
                    watch=watch,
                )
                error = result.error
                approval = error.details.get("approval") if error is not None and error.code == "suspended" else None
                if error is None or approval is None or not (self._elicit and can_ask(ctx)):
                    break
                question = question_of(self._service, approval)
                if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    state = Waiting(approval=approval, run=error.details.get("run"))
                    return types.InputRequiredResult(
                        input_requests={QUESTION: types.ElicitRequest(params=question)},
                        request_state=state.model_dump_json(),
                    )
                if record_answer(self._service, approval, await ask(ctx, question), _client(ctx)) is None:
                    break
        if error is not None and error.code == "unknown_tool" and error.tool in (None, params.name):
            raise MCPError(types.INVALID_PARAMS, failure_text(error))
        return call_result(result, offer.result if offer is not None else {})


def _client(ctx: Context) -> str:
    params = ctx.session.client_params
    return repr(params.client_info.name[:100]) if params is not None else "a client"
