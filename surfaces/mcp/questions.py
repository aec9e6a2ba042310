"""Approvals through the client: the question of a suspended call goes to the client's user by elicitation.

The client only carries the answer. The record decides: an answer is written there like one from the terminal, allows one call once,
and is used up by it. Nothing proves that a person read the question; a client can answer by itself. So the owner must turn this on
when the server starts (``--elicit``), and otherwise the answer is given with ``albert approvals answer``.

Protocol revisions differ: up to 2025-11-25 the server asks during the call. Since 2026-07-28 the call ends with the question, and
the client repeats it with the answer and a sealed state. The SDK seals this state for the session, the call and its arguments, with
a key that outlives the server.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.elicitation import render_elicitation_schema
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field, StrictBool, ValidationError

from albert_tools.engine.agent.texts import plain
from albert_tools.engine.authority.approvals import Approval
from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService
from albert_tools.store.atomic import write_atomic, writing
from albert_tools.store.os_errors import io_failure
from albert_tools.store.private_folder import make_private
from albert_tools.surfaces.text.approval_prompt import claim, shown_arguments
from albert_tools.surfaces.text.console import one_line
from albert_tools.surfaces.text.whole_arguments import whole_arguments

#: The key of the question in a request for input.
QUESTION = "approval"
_KEY_BYTES = 32


class Allow(BaseModel):
    """A yes allows one call, once."""

    # Some clients submit a form untouched, without showing it. That allows nothing.
    allow: StrictBool = Field(default=False, title="Allow this call")


_FORM = render_elicitation_schema(Allow)


class Waiting(BaseModel):
    """The state that the client returns with an answer: the question, and the run that waits for it."""

    approval: str
    run: str | None = None


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client declares that it can show a form to its user."""
    declared = ctx.session.client_capabilities
    elicitation = declared.elicitation if declared is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def question_of(service: ToolService, approval: str) -> types.ElicitRequestFormParams:
    """The question, with the exact call. The text of an argument can't begin a line.

    Raises:
        Failure: `not_found`, `io_error`.
    """
    question = service.approvals.get(approval)
    whole = whole_arguments(service, question)
    return types.ElicitRequestFormParams(message=plain(_message(question, whole)), requested_schema=_FORM)


def _message(approval: Approval, whole: Mapping[str, Any] | None) -> str:
    by = f", called by {one_line(' in '.join(reversed(approval.callers)))}" if approval.callers else ""
    arguments = whole if whole is not None else approval.arguments
    shown = shown_arguments(approval.tool, arguments if isinstance(arguments, Mapping) else {"arguments": arguments})
    lines = [f"May {one_line(approval.tool)} be called{by}?", *(line for line in shown if line is not None)]
    if whole is None or None in shown:
        lines.append(f"  `albert approvals show {approval.id}` shows all of it")
    if approval.reason:
        lines.append(f"  {claim(approval.reason)}")
    return "\n".join([*lines, f"{one_line(approval.message)} ({one_line(approval.rule)})"])


async def ask(
    ctx: ServerRequestContext[Any, Any], question: types.ElicitRequestFormParams
) -> types.ElicitResult | None:
    """Ask during the call, as protocol revisions up to 2025-11-25 do. None if the client has failed to answer."""
    try:
        return await ctx.session.elicit_form(question.message, question.requested_schema, ctx.request_id)
    except (MCPError, ValidationError):
        return None


def record_answer(service: ToolService, approval: str, answer: types.ElicitResult | None, client: str) -> bool | None:
    """Write the answer to the record. Returns whether it was yes; None if the question is still open.

    The first answer counts. If the record has another one, only a no has an effect: it revokes an unused yes.

    Raises:
        Failure: `not_found`, `io_error`.
    """
    if answer is None or answer.action == "cancel":
        return None
    yes = answer.action == "accept" and _is_yes(answer.content)
    try:
        service.approvals.answer(approval, "once" if yes else "no", f"the user of {client}, by MCP elicitation")
    except Failure as failure:
        if failure.code not in ("exists", "timeout"):
            raise
        if not yes and service.approvals.get(approval).state == "yes":
            service.approvals.revoke(approval)
    return yes


def _is_yes(content: Any) -> bool:
    try:
        return Allow.model_validate(content or {}).allow
    except ValidationError:
        return False


def read_state(text: str | None) -> Waiting | None:
    """The state of a repeated call. The SDK has checked that this server made it for this call of this session."""
    return Waiting.model_validate_json(text) if text else None


def state_key(state: Path) -> bytes:
    """The key that seals the states of all servers of a home, in its state folder. It is made at the first use.

    Raises:
        Failure: `io_error`.
    """
    folder = state / "mcp"
    path = folder / "key"
    make_private(folder, "the key of MCP")
    with writing(folder):
        try:
            if not path.exists():
                write_atomic(folder, path, os.urandom(_KEY_BYTES))
            return path.read_bytes()
        except OSError as error:
            raise io_failure("read or make", path, error) from error
