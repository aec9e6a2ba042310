"""What all adapters share: the tools that a session is offered, one call of the service, and the text of a failure for a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.agent.offers import Offer, offered
from albert_tools.engine.agent.tool_specs import MAX_SPEC_NAME, spec_name
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.result import ToolResult
from albert_tools.service import SyncToolService, ToolService

#: `SyncToolService` serves any agent; `ToolService` serves asynchronous agents in its own event loop.
Service = ToolService | SyncToolService


def offers(service: Service, session: str) -> dict[str, Offer]:
    """The tools that the session is offered, by the names that a provider of models accepts.

    A tool whose name is too long for providers is left out; `run_tool` calls it.

    Raises:
        Failure: `permission_denied` if the session has ended; `io_error`, `damaged`.
    """
    found = service.offered(session=session) if isinstance(service, SyncToolService) else offered(service, session)
    return {spec_name(offer.name): offer for offer in found if len(offer.name) <= MAX_SPEC_NAME}


async def aoffers(service: Service, session: str) -> dict[str, Offer]:
    """As `offers`, without blocking the event loop."""
    return await asyncio.to_thread(offers, service, session)


def call(service: Service, offer: Offer, arguments: Mapping[str, Any], session: str) -> ToolResult:
    """Call a tool for an agent that isn't asynchronous.

    Raises:
        TypeError: the service is asynchronous.
    """
    if not isinstance(service, SyncToolService):
        raise TypeError(
            "this service is asynchronous: call its tools from an asynchronous agent, or open a SyncToolService"
        )
    return service.invoke(offer.name, arguments, version=offer.version or None, session=session)


async def acall(service: Service, offer: Offer, arguments: Mapping[str, Any], session: str) -> ToolResult:
    """Call a tool for an asynchronous agent. If the agent is cancelled, the call is cancelled too."""
    invoke = service.ainvoke if isinstance(service, SyncToolService) else service.invoke
    return await invoke(offer.name, arguments, version=offer.version or None, session=session)


def failure_text(failure: Failure) -> str:
    """A failure as a model reads it: the code, the message, and what to do. A waiting call names the command that answers it."""
    return "\n".join(filter(None, (f"{failure.code}: {failure.message}", failure.hint)))


def output_text(output: Any) -> str:
    """An output as a model reads it: a text as it is, anything else as JSON."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
