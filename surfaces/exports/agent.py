"""What all adapters share: the tools that a session is offered, and the calls of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from albert_tools.engine.agent.offers import Offer, offered
from albert_tools.engine.agent.suspended_calls import SuspendedCalls
from albert_tools.engine.agent.tool_specs import by_spec_name
from albert_tools.engine.model.result import ToolResult
from albert_tools.service import SyncToolService, ToolService

_Tool = TypeVar("_Tool")

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
        offers = (
            service.offered(session=self._session)
            if isinstance(service, SyncToolService)
            else offered(service, self._session)
        )
        return by_spec_name(offers)

    def offers_changed(self) -> str:
        """A text that differs after each change of what is active. Raises Failure `io_error`, `damaged`."""
        service = self._service
        if isinstance(service, SyncToolService):
            return service.within(lambda inner: inner.offers_changed())
        return service.offers_changed()

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


class LiveTools(list[_Tool], Generic[_Tool]):
    """The tools that a session is offered, as the objects of a framework: a list that is brought up to date by each iteration.

    So a tool that is approved later appears in the next request to the model. An unchanged tool stays the same object.
    """

    def __init__(self, agent: Agent, make: Callable[[str, Offer], _Tool]) -> None:
        super().__init__()
        self._agent, self._make = agent, make
        self._seen: str | None = None
        self._offers: dict[str, Offer] = {}
        self.refresh()

    def refresh(self) -> None:
        """Bring the list up to date.

        Raises:
            Failure: `permission_denied` if something has changed and the session has ended; `io_error`, `damaged`.
        """
        now = self._agent.offers_changed()
        if now == self._seen:
            return
        offers = self._agent.offers()
        made = dict(zip(self._offers, super().__iter__(), strict=True))
        same = {name for name, offer in offers.items() if self._offers.get(name) == offer}
        self[:] = [made[name] if name in same else self._make(name, offer) for name, offer in offers.items()]
        self._offers, self._seen = offers, now

    def __iter__(self) -> Iterator[_Tool]:
        self.refresh()
        return super().__iter__()
