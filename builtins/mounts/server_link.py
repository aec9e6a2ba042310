"""An opened connection to a mounted server: the SDK's client over the streams of a confined process, or over HTTP.

A task keeps it open, because the client must be closed by the task that has opened it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from http import HTTPStatus
from http.client import responses
from typing import Any

from mcp import Client, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    PaginatedRequestParams,
)
from pydantic import TypeAdapter, ValidationError

from albert_tools.builtins.mounts.calls_under_way import CallsUnderWay
from albert_tools.builtins.mounts.confined_server import ConfinedServer, seen_by_server
from albert_tools.builtins.mounts.http_server import NO_SESSION, http_streams
from albert_tools.builtins.mounts.mount import Mount
from albert_tools.builtins.mounts.pinning import MAX_TOOLS, hashes_of
from albert_tools.builtins.mounts.server_limits import CLOSE_SECONDS
from albert_tools.builtins.mounts.server_schemas import plain_text, quoted
from albert_tools.builtins.net.proxy import FilteringProxy
from albert_tools.builtins.net.secrets import Secrets
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext
from albert_tools.engine.model.turns import CLIENT
from albert_tools.engine.policy.host_rules import host_of, is_host

#: The hint for a process that ended before it listed its tools.
_SEES = "the server sees only the workspace and installed programs; put its files there"
#: A server of the revision 2026-07-28 may answer a call with questions to its client.
_ANSWER: TypeAdapter[Any] = TypeAdapter(CallToolResult | InputRequiredResult)
_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
#: Characters of a server's message that an error repeats.
_MAX_SAID = 1000

# The SDK logs what a server sends. Without a handler, Python would print it on the terminal.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Link:
    """One opened connection."""

    def __init__(self, mount: Mount, context: CallContext) -> None:
        self._mount = mount
        self._secrets = Secrets()
        self._workspace = context.workspace
        self._record_seen = context.record_seen
        self._seen: list[dict[str, Any]] = []
        self._calls = CallsUnderWay(mount.name)
        self._proxy: FilteringProxy | None = None
        self._closing = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self.server: ConfinedServer | None = None
        self.listing: list[dict[str, Any]] = []
        self.hashes: dict[str, str] = {}
        self.listed_at = -math.inf
        #: When it first refused to list its tools; infinite if it did not.
        self.refused_at = math.inf
        #: Whether it closes when its last call has ended.
        self.is_retired = False

    @property
    def ended(self) -> bool:
        """Whether the connection is closed, or its server has closed it."""
        return (self.server is not None and self.server.finished) or (self._task is not None and self._task.done())

    @property
    def is_used(self) -> bool:
        """Whether a call is under way."""
        return bool(self._calls)

    async def _open(self) -> None:
        transport = self._http() if self._mount.url else self._process()
        self._task = asyncio.create_task(self._kept_open(transport))
        both: set[asyncio.Future[Any]] = {self._task, self._client}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not self._client.done():
            raise self._why_ended()

    def _http(self) -> AbstractAsyncContextManager[Any]:
        token = self._secrets.take(self._mount.secrets[0], "Bearer ") if self._mount.secrets else ""
        return http_streams(self._mount.url, self._calls, self._seen, token)

    def _process(self) -> AbstractAsyncContextManager[Any]:
        values = {name: self._secrets.take(name) for name in self._mount.secrets}
        connect = self._connected if self._mount.hosts else None
        self.server = ConfinedServer(self._mount.command, values, connect, self._closing.set)
        return self.server.streams(self._workspace, self._record_seen)

    def _connected(self, listener: Any) -> FilteringProxy:
        urls = [f"https://{host}/" for host in self._mount.hosts]
        self._proxy = FilteringProxy(
            self._judge,
            address_rules=lambda: self._calls.address_rules(*urls),
            listening=listener,
            still=self._calls.demand_session,
        )
        return self._proxy

    async def _judge(self, url: str, method: str) -> None:
        if not self._calls:
            why = f"{self._mount.name} may use the network only during its calls"
            raise Failure("permission_denied", why, rule=f"mounts.{self._mount.name}.hosts")
        host = host_of(url) or ""
        if not any(is_host(host, named) for named in self._mount.hosts):
            why = f"{self._mount.name} may not reach {host!r}, which was not named when it was mounted"
            raise Failure("permission_denied", why, rule=f"mounts.{self._mount.name}.hosts")
        self._calls.demand(url, method)
        self._calls.demand_session()

    async def _kept_open(self, transport: AbstractAsyncContextManager[Any]) -> None:
        # The lookups of a server count for no session, because its connection serves all sessions.
        CLIENT.set(f"mount:{self._mount.name}")
        about = Implementation(name="albert-tools", version="1")
        async with Client(transport, cache=None, client_info=about) as client:
            self._client.set_result(client)
            await self._closing.wait()

    async def aclose(self) -> None:
        """Close the connection. The server's process is killed if it does not end by itself."""
        self._closing.set()
        if self._task is not None:
            _, running = await asyncio.wait({self._task}, timeout=CLOSE_SECONDS if self._client.done() else 0)
            for task in running:
                task.cancel()
            # Its failure was reported by the call that it ended.
            await asyncio.gather(self._task, return_exceptions=True)

    async def suits(self, context: CallContext) -> bool:
        """Whether the process sees what the rules now let it see. Files that the rules hide may have been made or saved since."""

        def unchanged(server: ConfinedServer) -> bool:
            with seen_by_server(context.workspace) as (now, _):
                return server.sees(now)

        return self.server is None or await asyncio.to_thread(unchanged, self.server)

    def begin(self, context: CallContext) -> None:
        """A call begins: its rules apply from now on. `record` ends it."""
        self._calls.begin(context)
        if self.server is not None:
            self.server.asked()
        if self._proxy is not None:
            self._proxy.asked()

    async def list_tools(self) -> None:
        """Ask the server for its tools. The first call connects to it.

        Raises:
            Failure: See `Connection.call`.
        """
        if self._task is None:
            await self._open()
        tools: list[dict[str, Any]] = []
        cursor = None
        # A page may be empty.
        for _ in range(MAX_TOOLS):
            session = (await self._client).session
            try:
                page = await self._answered(session.list_tools(params=PaginatedRequestParams(cursor=cursor)))
            except Failure:
                self.refused_at = min(self.refused_at, time.monotonic())
                raise
            tools += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None or len(tools) > MAX_TOOLS:
                break
        self.listing = _without(self._secrets, tools)
        self.hashes = hashes_of(self.listing)
        self.listed_at, self.refused_at = time.monotonic(), math.inf

    async def request(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool. The SDK's `call_tool` would check the result by the server's own schema, whose patterns may take for ever.

        Raises:
            Failure: `service_error`.
        """
        session = (await self._client).session
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        answer = await self._answered(session.send_request(request, _ANSWER))
        if isinstance(answer, CallToolResult):
            return answer
        asked = [each.method for each in (answer.input_requests or {}).values()]
        raise self._said("it asks for input, which mounted servers don't get", ", ".join(asked))

    async def _answered(self, request: Any) -> Any:
        """Wait for the answer, or for the end of the connection."""
        assert self._task is not None
        asking = asyncio.ensure_future(request)
        try:
            await asyncio.wait({asking, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise self._why_ended()
            return asking.result()
        except MCPError as error:
            # Before the next request, whose status would count.
            refused = self._refused() or self._said("it refused the call", error.message)
            may_be_over = error.code == CONNECTION_CLOSED or self._status() in NO_SESSION
            if may_be_over and not await self._is_open():
                self._closing.set()
                await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
                raise self._why_ended(error.message) from None
            raise refused from None
        except Failure:
            raise
        except Exception as fault:
            # The server decides what the SDK reads, so any exception of the SDK can occur.
            why = "is not MCP" if isinstance(fault, ValidationError) else f"can't be read ({type(fault).__name__})"
            raise Failure("service_error", f"{self._mount.name} sent an answer that {why}") from None
        finally:
            asking.cancel()

    async def _is_open(self) -> bool:
        """Whether the server still answers, over HTTP also by refusing. It may have refused one call only."""
        before = self._calls.answered
        try:
            await (await self._client).session.list_tools()
        except MCPError:
            return self._calls.answered > before
        except Exception:
            return False
        return True

    def _why_ended(self, message: str = "") -> Failure:
        """The failure for a connection that has ended."""
        failed = self._task is not None and self._task.done() and not self._task.cancelled()
        error = self._task.exception() if self._task is not None and failed else None
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        failure = next((e for e in (error, getattr(error, "__cause__", None)) if isinstance(e, Failure)), None)
        if failure is not None:
            return failure.copy()
        if self.server is not None:
            said = self.server.errors
            stopped = self._said(f"it stopped: {self.server.why or message or 'it closed its output'}", said)
            return stopped if self.listing else stopped.copy(hint=_SEES)
        return self._refused() or self._said(
            f"the connection ended: {plain_text(error, _MAX_SAID) or 'its server closed it'}", message
        )

    def _refused(self) -> Failure | None:
        """The failure for a message that the server has answered with the status of an error. The SDK doesn't say which."""
        status = self._status()
        if status not in _REFUSED and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        failure = self._said(f"its server answered {status} {responses.get(status, '')}".rstrip(), "")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            again = f"`albert unmount {self._mount.name}`, then mount it again with --secret NAME"
            has = f"it refuses the secret {self._mount.secrets[0]}" if self._mount.secrets else "it may want a token"
            failure.hint = f"{has}: {again}, which is sent as its bearer token"
        return failure

    def _status(self) -> int:
        """The status of the last answer over HTTP; 0 if there is none."""
        posts = [one["status"] for one in self._seen if one["method"] == "POST" and one["status"] is not None]
        return posts[-1] if posts else 0

    def _said(self, what: str, said: str) -> Failure:
        text = plain_text(self._secrets.out_of_text(said), _MAX_SAID)
        words = f" ({quoted(text)})" if text else ""
        return Failure("service_error", f"{self._mount.name}: {what}{words}")

    def secrets_out_of(self, result: CallToolResult) -> CallToolResult:
        """The result without the secrets of the server."""
        if not self._secrets:
            return result
        clean = partial(_without, self._secrets)
        return CallToolResult.model_validate(clean(result.model_dump(mode="json", by_alias=True, exclude_none=True)))

    def record(self, context: CallContext) -> None:
        """Record the requests to the network since the last record. Calls at the same time share them.

        After the last one the server has no network, because no call's rules and mode would apply to it.
        """
        self._calls.end(context)
        if not self.is_used:
            if self._proxy is not None:
                self._proxy.hang_up()
            if self.is_retired:
                self._closing.set()
                if self._task is not None and not self._client.done():
                    # It hangs at its start, where nothing waits for the end.
                    self._task.cancel()
        seen, self._seen[:] = [*self._seen], []
        if self._proxy is not None:
            for one in self._proxy.seen:
                size = one.sent_bytes + one.size_bytes
                seen.append({"method": one.method, "url": one.url, "refused": one.refused, "size_bytes": size})
            self._proxy.seen.clear()
        for facts in seen:
            context.effect("network", **facts)


def _without(secrets: Secrets, value: Any) -> Any:
    """A JSON value without secrets."""
    if isinstance(value, str):
        return secrets.out_of_text(value)
    if isinstance(value, list):
        return [_without(secrets, each) for each in value]
    if isinstance(value, dict):
        return {secrets.out_of_text(key): _without(secrets, each) for key, each in value.items()}
    return value
