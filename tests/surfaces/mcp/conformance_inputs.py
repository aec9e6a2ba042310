"""What the conformance suite asks of a server of the revision 2026-07-28: results that need input, and calls with odd clients.

A call is answered with questions until its client has answered all of them. The product's middleware seals the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

Context = ServerRequestContext[Any, Any]


def form(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    """A question with one field."""
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(said: str) -> types.CreateMessageRequest:
    """A request for a model's answer."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=said))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))


NAME = {"user_name": form("What is your name?", "name")}
CONFIRM = {"confirm": form("Please confirm", "ok", "boolean")}
CAPITAL = {"capital_question": sampling("What is the capital of France?")}
ROOTS = {"client_roots": types.ListRootsRequest(params=types.RequestParams())}
#: The questions of each tool, one dict a round.
ROUNDS: Mapping[str, list[dict[str, Any]]] = {
    "test_input_required_result_elicitation": [NAME],
    "test_input_required_result_sampling": [CAPITAL],
    "test_input_required_result_list_roots": [ROOTS],
    "test_input_required_result_request_state": [CONFIRM],
    "test_input_required_result_multiple_inputs": [NAME | {"greeting": sampling("Generate a greeting")} | ROOTS],
    "test_input_required_result_multi_round": [
        {"step1": form("Step 1: What is your name?", "name")},
        {"step2": form("Step 2: What is your favorite color?", "color")},
    ],
    "test_input_required_result_tampered_state": [CONFIRM],
    "test_input_required_result_capabilities": [NAME | CAPITAL],
    "test_input_required_result_prompt": [{"user_context": form("What context should the prompt use?", "context")}],
    "test_streaming_elicitation": [NAME],
}
#: Tools whose state the client returns.
WITH_STATE = {name for name in ROUNDS if any(word in name for word in ("state", "multi"))}


def questions(ctx: Context, params: Any) -> types.InputRequiredResult | None:
    """What the call still has to ask; None if it can be answered, or if its tool asks nothing."""
    rounds = ROUNDS.get(params.name)
    if rounds is None:
        return None
    answers = params.input_responses or {}
    done = int(params.request_state or 0)
    if all(answers.get(key) is not None for key in rounds[done]):
        done += 1
    if done == len(rounds):
        return None
    declared = ctx.session.client_capabilities
    assert declared is not None
    asked = {
        key: question
        for key, question in rounds[done].items()
        if isinstance(question, types.ListRootsRequest)
        or (declared.sampling if isinstance(question, types.CreateMessageRequest) else declared.elicitation) is not None
    }
    return types.InputRequiredResult(
        input_requests=asked, request_state=str(done) if params.name in WITH_STATE else None
    )


def demand_sampling(ctx: Context) -> None:
    """Refuse a client that has not declared sampling, as the revision says."""
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "the client must declare sampling",
            {"requiredCapabilities": {"sampling": {}}},
        )
