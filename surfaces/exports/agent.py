"""What all adapters share: the tools that a session is offered, and the calls of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.agent.offers import Offer, offered
from albert_tools.engine.agent.suspended_calls import SuspendedCalls
from albert_tools.engine.agent.tool_specs import by_spec_name
from albert_tools.engine.model.result import ToolResult
from albert_tools.service import SyncToolService, ToolService

#: `SyncToolService` serves any agent; `ToolService` serves asynchronous agents in its own event loop.
Service = ToolService | SyncToolService


class Agent:
    """The offers and the calls of one session.

    A call that waits for a person fails. When the agent makes the same call again, its run is resumed.
    """

    def __init__(self, service: Service, session: str) -> None:
        self._service = service
        self._session = session
        self._suspended = SuspendedCalls()

    def offers(self) -> dict[str, Offer]:
        """The tools that the session is offered, see `by_spec_name`.

        Raises:
            Failure: `permission_denied` if the session has ended; `io_error`, `damaged`.
        """
        service = self._service
        found = (
            service.offered(session=self._session)
            if isinstance(service, SyncToolService)
            else offered(service, self._session)
        )
        return by_spec_name(found)

    async def aoffers(self) -> dict[str, Offer]:
        """As `offers`, without blocking the event loop."""
        return await asyncio.to_thread(self.offers)

    def call(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool for an agent that isn't asynchronous.

        Raises:
            TypeError: the service is asynchronous.
        """
        if not isinstance(self._service, SyncToolService):
            raise TypeError(
                "this service is asynchronous: call its tools from an asynchronous agent, or open a SyncToolService"
            )
        return self._service.run(lambda service: self._made(service, offer, arguments))

    async def acall(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool for an asynchronous agent. If the agent is cancelled, the call is cancelled too."""
        if isinstance(self._service, SyncToolService):
            return await self._service.arun(lambda service: self._made(service, offer, arguments))
        return await self._made(self._service, offer, arguments)

    async def _made(self, service: ToolService, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        return await self._suspended.invoke(
            service, offer.name, arguments, version=offer.version, session=self._session
        )
