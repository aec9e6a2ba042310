"""The list of tools, in the service's fixed order and in pages.

A call uses the version that is listed. So a tool that an agent has defined again is not called by the name of the active one.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp import types
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from albert_tools.engine.agent.texts import failure_text
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.reserved_names import AGENT_TOOLS
from albert_tools.service import ToolService
from albert_tools.surfaces.mcp.plain_schemas import without_type_lists
from albert_tools.surfaces.mcp.results import declared_schema

if TYPE_CHECKING:
    from albert_tools.engine.agent.offers import Offer

#: Tools in one page of the list. Some clients read only the first page.
PAGE = 1000
#: A whole number in a request.
NUMBER = "[0-9]{1,9}"
#: The seconds for which the list is remembered. A change of what is active has an effect at once; a change of the rules or the mode
#: is judged with each call anyway.
REMEMBERED_SECONDS = 1.0


class _Listed(Struct, frozen=True):
    """What the owner is offered. A session is offered what its lease covers of it."""

    changed: str
    at: float
    offers: dict[str, Offer]
    tools: list[types.Tool]


class Offers:
    """What the sessions of a service are offered.

    Args:
        service: Has the tools.
        own: Whether only the agent's own tools are listed. `run_tool` runs the others, and a call by name too.
    """

    def __init__(self, service: ToolService, own: bool = False) -> None:
        self._service = service
        self._own = own
        self._listed: _Listed | None = None
        self._listing = asyncio.Lock()

    async def page(self, token: str, cursor: str | None) -> types.ListToolsResult:
        """The page of the list that begins at the cursor.

        Raises:
            MCPError: The cursor is invalid, or the session has ended.
        """
        known = await self._list()
        covers = self._covers(token)
        tools, following = page_of(cursor, [tool for tool in known.tools if covers(known.offers[tool.name])])
        return types.ListToolsResult(tools=tools, next_cursor=following)

    async def find(self, name: str) -> Offer | None:
        """The offer with this name; None if there is none. Whether the lease of a session covers it, the call finds out.

        Raises:
            MCPError: The tools can't be listed.
            Failure: `io_error`, `damaged`.
        """
        known = self._listed
        if known is None or name not in known.offers or known.changed != self._service.offers_changed():
            known = await self._list()
        return known.offers.get(name)

    async def names(self, token: str) -> list[str]:
        """The names of all tools that the session is offered. Raises MCPError if the session has ended."""
        known = (await self._list()).offers.values()
        return [offer.name for offer in filter(self._covers(token), known)]

    async def saved(self, token: str) -> list[str]:
        """The names of the active saved tools. Raises MCPError if the session has ended."""
        known = (await self._list()).offers.values()
        return [offer.name for offer in filter(self._covers(token), known) if offer.version]

    def _covers(self, token: str) -> Callable[[Offer], bool]:
        from albert_tools.engine.agent.offers import is_covered

        try:
            covers = self._service.coverage(token)
        except Failure as failure:
            raise _refused(failure) from failure
        return lambda offer: is_covered(offer, covers)

    async def _list(self) -> _Listed:
        # Many clients ask for the list when they connect. It is made once.
        async with self._listing:
            try:
                changed, known, now = self._service.offers_changed(), self._listed, time.monotonic()
                if known is not None and known.changed == changed and now - known.at < REMEMBERED_SECONDS:
                    return known
                offers = await self._service.offered()
            except Failure as failure:
                raise _refused(failure) from failure
            listed = [_tool(offer) for offer in offers if not self._own or offer.name in AGENT_TOOLS]
            self._listed = known = _Listed(changed, now, {offer.name: offer for offer in offers}, listed)
            return known


def _refused(failure: Failure) -> MCPError:
    return MCPError(types.INVALID_REQUEST, failure_text(failure))


def page_of(cursor: str | None, items: list[Any]) -> tuple[list[Any], str | None]:
    """The items of the page that begins at the cursor, and the cursor of the next page. Raises MCPError."""
    if cursor is not None and not re.fullmatch(NUMBER, cursor):
        raise MCPError(types.INVALID_PARAMS, "invalid cursor; list again from the beginning")
    start = int(cursor or 0)
    end = start + PAGE
    return items[start:end], str(end) if end < len(items) else None


def _tool(offer: Offer) -> types.Tool:
    return types.Tool(
        name=offer.name,
        title=offer.name.replace("_", " ").replace(".", ": ").capitalize(),
        description=offer.description,
        input_schema=without_type_lists(offer.parameters),
        output_schema=declared_schema(offer.result),
        annotations=types.ToolAnnotations.model_validate(offer.annotations, by_alias=True),
    )
