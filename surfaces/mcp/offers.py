"""The list of tools, in the service's fixed order and in pages.

A call uses the version that is listed. So a tool that an agent has defined again is not called by the name of the active one.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
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
#: Sessions whose list is remembered, and the seconds for which it is. A change of what is active has an effect at once; a change of
#: the rules, the mode or the lease is judged with each call anyway.
MAX_REMEMBERED, REMEMBERED_SECONDS = 64, 1.0


class _Listed(Struct, frozen=True):
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
        self._listed: OrderedDict[str, _Listed] = OrderedDict()
        self._listing = asyncio.Lock()

    async def page(self, token: str, cursor: str | None) -> types.ListToolsResult:
        """The page of the list that begins at the cursor.

        Raises:
            MCPError: The cursor is invalid, or the session has ended.
        """
        tools, following = page_of(cursor, (await self._list(token)).tools)
        return types.ListToolsResult(tools=tools, next_cursor=following)

    async def find(self, token: str, name: str) -> Offer | None:
        """The offer with this name; None if there is no such offer.

        Raises:
            MCPError: The session has ended.
            Failure: `io_error`, `damaged`.
        """
        known = self._listed.get(token)
        if known is None or name not in known.offers or known.changed != self._service.offers_changed():
            known = await self._list(token)
        return known.offers.get(name)

    async def names(self, token: str) -> list[str]:
        """The names of all tools that the session is offered. Raises MCPError if the session has ended."""
        return [*(await self._list(token)).offers]

    async def saved(self, token: str) -> list[str]:
        """The names of the active saved tools. Raises MCPError if the session has ended."""
        return [name for name, offer in (await self._list(token)).offers.items() if offer.version]

    async def _list(self, token: str) -> _Listed:
        # Many clients ask for the same list when they connect. It is made once.
        async with self._listing:
            try:
                changed = self._service.offers_changed()
                known = self._listed.get(token)
                now = time.monotonic()
                if known is not None and known.changed == changed and now - known.at < REMEMBERED_SECONDS:
                    return known
                offers = await self._service.offered(session=token)
            except Failure as failure:
                raise MCPError(types.INVALID_REQUEST, failure_text(failure)) from failure
            listed = [_tool(offer) for offer in offers if not self._own or offer.name in AGENT_TOOLS]
            known = _Listed(changed, now, {offer.name: offer for offer in offers}, listed)
            self._listed[token] = known
            self._listed.move_to_end(token)
            while len(self._listed) > MAX_REMEMBERED:
                self._listed.popitem(last=False)
            return known


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
