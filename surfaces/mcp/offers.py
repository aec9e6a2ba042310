"""The list of tools, in the service's fixed order and in pages.

A call uses the version that is listed. So a tool that an agent has defined again is not called by the name of the active one.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from mcp import types
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService
from albert_tools.surfaces.mcp.results import declared_schema, failure_text

if TYPE_CHECKING:
    from albert_tools.engine.agent.offers import Offer

#: Tools in one page of the list.
PAGE = 100
#: Sessions whose offers are remembered, and the seconds after which an unknown name makes the service list them again.
MAX_REMEMBERED, AGAIN_SECONDS = 64, 1.0


class _Remembered(Struct, frozen=True):
    changed: str
    at: float
    offers: dict[str, Offer]


class Offers:
    """What the sessions of a service are offered."""

    def __init__(self, service: ToolService) -> None:
        self._service = service
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()

    async def page(self, token: str, cursor: str | None) -> types.ListToolsResult:
        """The page of the list that begins at the cursor.

        Raises:
            MCPError: The cursor is invalid, or the session has ended.
        """
        offers = [*(await self._listed(token)).values()]
        start, end = page_of(cursor, len(offers))
        return types.ListToolsResult(
            tools=[_tool(offer) for offer in offers[start:end]], next_cursor=str(end) if end < len(offers) else None
        )

    async def find(self, token: str, name: str) -> Offer | None:
        """The offer with this name; None if there is no such offer.

        Raises:
            MCPError: The session has ended.
            Failure: `io_error`, `damaged`.
        """
        known = self._remembered.get(token)
        stale = known is None or known.changed != self._service.offers_changed()
        if known is None or stale or (name not in known.offers and time.monotonic() - known.at > AGAIN_SECONDS):
            return (await self._listed(token)).get(name)
        return known.offers.get(name)

    async def saved(self, token: str) -> list[str]:
        """The names of the active saved tools. Raises MCPError if the session has ended."""
        return [name for name, offer in (await self._listed(token)).items() if offer.version]

    async def _listed(self, token: str) -> dict[str, Offer]:
        try:
            changed = self._service.offers_changed()
            offers = {offer.name: offer for offer in await self._service.offered(session=token)}
        except Failure as failure:
            raise MCPError(types.INVALID_REQUEST, failure_text(failure)) from failure
        self._remembered[token] = _Remembered(changed, time.monotonic(), offers)
        self._remembered.move_to_end(token)
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        return offers


def page_of(cursor: str | None, total: int) -> tuple[int, int]:
    """The first item of the page that begins at the cursor, and the item after its last one. Raises MCPError."""
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise MCPError(types.INVALID_PARAMS, "invalid cursor; list again from the beginning")
    start = min(int(cursor or 0), total)
    return start, min(start + PAGE, total)


def _tool(offer: Offer) -> types.Tool:
    return types.Tool(
        name=offer.name,
        description=offer.description,
        input_schema=offer.parameters,
        output_schema=declared_schema(offer.result),
        annotations=types.ToolAnnotations.model_validate(offer.annotations, by_alias=True),
    )
