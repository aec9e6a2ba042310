"""Connections to mounted servers: one for each server, shared by all calls of a service.

A connection is opened at the first call, by a task of its own that closes it when the service closes. Whenever it is opened, and
once a minute, the server's tools are compared with the accepted ones. A tool that differs is suspended: its calls are denied until
the owner has looked at it. A server that has ended is started again by the next call. After each further failure there is a longer
pause, in which calls fail.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
from mcp_types import CallToolResult

from albert_tools.builtins.mounts.mount import Mount, PinnedTool, difference, note_suspended
from albert_tools.builtins.mounts.server_limits import (
    CHECK_SECONDS,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    REFUSING_SECONDS,
    START_SECONDS,
)
from albert_tools.builtins.mounts.server_link import Link
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.workspace.git_lock import turn

#: The hint for a process that does not list its tools.
_NO_NETWORK = "it reaches only the hosts of `--host`; install a server that npx or uvx would download"


class Connections:
    """The connections of one service, by the name of the mount."""

    def __init__(self) -> None:
        self._open: dict[str, Connection] = {}
        self._leaving: list[asyncio.Future[None]] = []

    def to(self, mount: Mount, state: Path | None = None) -> Connection:
        """The connection to a server. It is opened by its first call. The folder `state` gets its suspended tools."""
        known = self._open.get(mount.name)
        if known is None or not known.accepts(mount):
            if known is not None:
                # The owner has mounted another server by this name.
                self._leaving.append(asyncio.ensure_future(known.aclose()))
            known = self._open[mount.name] = Connection(mount, state)
        return known

    async def aclose(self) -> None:
        """Close every connection."""
        while self._open:
            _, connection = self._open.popitem()
            await connection.aclose()
        await asyncio.gather(*self._leaving, return_exceptions=True)


class Connection:
    """The connection to one server."""

    def __init__(self, mount: Mount, state: Path | None = None) -> None:
        self._mount = mount
        self._state = state
        self._lock = asyncio.Lock()
        self._link: Link | None = None
        #: Connections that no new call uses. Each closes when its last call ends.
        self._retired: list[Link] = []
        #: The listing of the server's tools that is under way. All calls wait for it.
        self._listing: asyncio.Future[None] | None = None
        self._again_at = self._pause = 0.0

    def accepts(self, mount: Mount) -> bool:
        """Whether this is the connection to the server of `mount`. Its tools are those of `mount` from now on."""
        if msgspec.structs.replace(mount, tools=self._mount.tools) != self._mount:
            return False
        if mount.tools != self._mount.tools and self._link is not None:
            # What the owner has accepted is newer than what the server listed.
            self._link.listed_at = -math.inf
        self._mount = mount
        return True

    async def aclose(self) -> None:
        """Close the connection, and end the server's process."""
        for link in self._retired:
            await link.aclose()
        await self._drop()

    async def _drop(self) -> None:
        link, self._link, self._listing = self._link, None, None
        if link is not None:
            await link.aclose()

    async def _retire(self, link: Link) -> None:
        """Give new calls another connection. This one closes when its last call ends."""
        if not link.is_used:
            return await self._drop()
        self._retired = [*(each for each in self._retired if not each.ended), link]
        link.is_retired = True
        self._link, self._listing = None, None

    async def listing(self, context: CallContext) -> list[dict[str, Any]]:
        """The tools of the server, as it describes them.

        Raises:
            Failure: As `call`.
        """
        link = await self._ready(context)
        try:
            return link.listing
        finally:
            link.record(context)

    async def call(self, context: CallContext, tool: PinnedTool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool, if it is still the accepted one.

        Raises:
            Failure: `permission_denied` if it is not, or a rule forbids the server's host; `service_error`: the server can't be
                started, has ended, or answers with an error; `sandbox_unavailable`, `io_error`, `not_found` (a secret).
        """
        link = await self._ready(context)
        try:
            self._demand_accepted(link, tool)
            is_process = link.server is not None
            if is_process:
                context.effect("execute", server=self._mount.name, remote=tool.remote)
            # Like a command, a process would see the forbidden files that git can bring meanwhile.
            async with turn(str(context.workspace.root), None, context.remaining) if is_process else nullcontext():
                result = await link.request(tool.remote, arguments)
        except Failure as failure:
            if link.ended:
                failure.hint = failure.hint or "the call may have had an effect; the next call connects again"
                await self._failed(link)
            raise
        finally:
            link.record(context)
        self._pause = 0.0
        return link.secrets_out_of(result)

    def _demand_accepted(self, link: Link, tool: PinnedTool) -> None:
        name = f"{self._mount.name}.{tool.name}"
        what = difference(tool, link.hashes)
        if what is not None:
            raise Failure(
                "permission_denied",
                f"{name} is suspended: it {what}",
                hint=f"the owner can compare and accept it with `albert mount look {self._mount.name}`",
                rule=f"mounts.{self._mount.name}",
                tool=name,
            )

    async def _ready(self, context: CallContext) -> Link:
        """An open connection with a recent listing, for a call with this context."""
        if self._mount.url and context.network is not None:
            # A call that may not reach the server leaves the connection to the others.
            context.network.demand(self._mount.url, "POST", by_owner=True)
        async with self._lock:
            link = self._link
            if link is not None and link.ended:
                await self._failed(link)
            elif link is not None and not await link.suits(context):
                await self._retire(link)
            if self._link is None:
                left = self._again_at - time.monotonic()
                if left > 0:
                    why = f"{self._mount.name} has failed several times; it is started again in {left:.1f} s"
                    raise Failure("service_error", why, retryable=True)
                self._link = Link(self._mount, context)
            link = self._link
            link.begin(context)
            if self._listing is None and time.monotonic() - link.listed_at > CHECK_SECONDS:
                self._listing = asyncio.ensure_future(self._list_tools(link))
                # If nobody waits for it any more, nobody takes its failure.
                self._listing.add_done_callback(lambda listing: listing.cancelled() or listing.exception())
            listing = self._listing
        try:
            if listing is not None:
                # A call that is cancelled leaves the listing to the others.
                await asyncio.shield(listing)
            # The server can write files that other calls read before it answers.
            context.record_seen()
        except BaseException as error:
            link.record(context)
            if self._listing is not None and self._link is link and not link.is_used:
                # Nobody waits for the listing any more.
                await self._drop()
            # All waiting calls get the same failure, and each adds to it.
            raise (error.copy() if isinstance(error, Failure) else error) from None
        return link

    async def _list_tools(self, link: Link) -> None:
        """Open the connection if it is new, and compare the server's tools with the accepted ones. All calls wait for this."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await link.list_tools()
            if self._state is not None:
                await asyncio.to_thread(note_suspended, self._state, self._mount, link.hashes)
        except TimeoutError:
            await self._failed(link)
            why = f"{self._mount.name} did not list its tools within {START_SECONDS:.0f} s"
            raise Failure(
                "service_error", why, hint=_NO_NETWORK if self._mount.command else None, retryable=True
            ) from None
        except BaseException:
            # It can refuse requests for a while. After a long while, only a new connection can help.
            if link.ended or not link.hashes or time.monotonic() - link.refused_at > REFUSING_SECONDS:
                await self._failed(link)
            raise
        finally:
            if self._link is link:
                self._listing = None

    async def _failed(self, link: Link) -> None:
        """Close a connection that has failed. After the first failure, the next one may be opened at once."""
        if self._link is link:
            self._again_at = time.monotonic() + self._pause
            self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
            await self._drop()
