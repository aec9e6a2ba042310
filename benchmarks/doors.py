"""A call from another process: over MCP (stdio and HTTP) and over gRPC, beside the servers of others with the same function.

Every call of Albert Tools is judged and recorded, and none of the others'. The first row shows what that costs without a protocol.
All servers run at the same time and are called in turn. Then 200 clients call each server at once.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from albert_tools import ToolService
from benchmarks.door_servers import echo

ROOT = Path(__file__).parent.parent
#: Calls in a block, clients at once, and the calls of each client.
BLOCK, CLIENTS, CALLS = 100, 200, 5
TEXT = "a short text"
RULES = "primitives_from: ['benchmarks.door_servers:echo']\n"

Call = Callable[[], Awaitable[Any]]
#: Opens a new connection of a client.
Connect = Callable[[], AbstractAsyncContextManager[Call]]


def table(rounds: int) -> list[str]:
    """The lines of both tables."""
    return asyncio.run(_measure(rounds))


async def _measure(rounds: int) -> list[str]:
    async with AsyncExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="albert-doors-"))).resolve()
        (top / "project" / ".albert").mkdir(parents=True)
        (top / "home" / "config").mkdir(parents=True)
        (top / "home" / "config" / "governance.yaml").write_text(RULES)
        service = await stack.enter_async_context(
            ToolService.open(home=top / "home", workspace=top / "project", governance={}, primitives=[echo])
        )
        servers = _servers(top, lambda: service.open_session("a client")[1], stack)
        token = service.open_session("the benchmark")[1]
        calls: dict[str, Call] = {"no protocol": lambda: service.invoke("echo", {"text": TEXT}, session=token)}
        for name, connect in servers.items():
            calls[name] = await stack.enter_async_context(connect())
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                began = time.perf_counter()
                for _ in range(BLOCK):
                    await call()
                times[name].append((time.perf_counter() - began) / BLOCK * 1e6)
        lines = [
            "| one call, µs | Albert Tools | the bare library | FastMCP | ratio to the bare library |",
            "|---|---:|---:|---:|---:|",
        ]
        lines += _rows({name: statistics.median(taken) for name, taken in times.items()})
        lines += [
            "",
            f"| {CLIENTS} clients at once | calls a second | median, ms | 99 %, ms | failed |",
            "|---|---:|---:|---:|---:|",
        ]
        for name, connect in servers.items():
            if "stdio" not in name:
                lines.append(f"| {name} | {await _crowd(connect)} |")
        return lines


def _rows(medians: dict[str, float]) -> list[str]:
    rows = [f"| no protocol: judged and recorded | {medians['no protocol']:,.0f} | | | |"]
    for way in ("MCP over stdio", "MCP over HTTP", "gRPC"):
        ours, bare, fast = (medians.get(f"{way}: {side}") for side in ("Albert Tools", "bare", "FastMCP"))
        ratio = f"{ours / bare:.2f}" if ours and bare else ""
        rows.append(f"| {way} | {' | '.join(f'{n:,.0f}' if n else '' for n in (ours, bare, fast))} | {ratio} |")
    return rows


async def _crowd(connect: Connect) -> str:
    """Connect all clients, let all of them call at once, and describe the calls."""
    taken: list[float] = []
    failed = 0
    ready, start = asyncio.Semaphore(0), asyncio.Event()

    async def client() -> None:
        nonlocal failed
        async with AsyncExitStack() as stack:
            try:
                call = await stack.enter_async_context(connect())
            except Exception:
                failed += CALLS
                return
            finally:
                ready.release()
            await start.wait()
            for _ in range(CALLS):
                began = time.perf_counter()
                try:
                    await call()
                except Exception:
                    failed += 1
                taken.append((time.perf_counter() - began) * 1000)

    clients = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    for _ in clients:
        await ready.acquire()
    began = time.perf_counter()
    start.set()
    await asyncio.gather(*clients)
    seconds = time.perf_counter() - began
    slowest = statistics.quantiles(taken, n=100)[-1]
    return f"{len(taken) / seconds:,.0f} | {statistics.median(taken):,.0f} | {slowest:,.0f} | {failed}"


# The servers


def _servers(top: Path, token: Callable[[], str], stack: AsyncExitStack) -> dict[str, Connect]:
    """Start the servers. Returns how a client connects to each. Each client has a session of its own."""
    albert = ["-m", "albert_tools.surfaces.cli"]
    where = ["--home", str(top / "home"), "--workspace", str(top / "project")]
    environment = {"PYTHONPATH": str(ROOT), "ALBERT_SESSION": token()}
    found: dict[str, Connect] = {}

    def start(*words: str, port: int) -> int:
        process = subprocess.Popen(
            [sys.executable, *words], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, cwd=top
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        _wait_for(port, process)
        return port

    if find_spec("mcp"):
        found["MCP over stdio: Albert Tools"] = lambda: _mcp_stdio([*albert, "mcp", *where], environment, top)
        found["MCP over stdio: bare"] = lambda: _mcp_stdio(["-m", "benchmarks.door_servers", "sdk"], environment, top)
        http = start(*albert, "mcp", "--http", str(free := _free_port()), *where, port=free)
        found["MCP over HTTP: Albert Tools"] = lambda: _mcp_http(http, token())
        bare = start("-m", "benchmarks.door_servers", "sdk", str(free := _free_port()), port=free)
        found["MCP over HTTP: bare"] = lambda: _mcp_http(bare, "")
    if find_spec("fastmcp"):
        command = ["-m", "benchmarks.door_servers", "fastmcp"]
        found["MCP over stdio: FastMCP"] = lambda: _mcp_stdio(command, environment, top)
        fast = start(*command, str(free := _free_port()), port=free)
        found["MCP over HTTP: FastMCP"] = lambda: _mcp_http(fast, "")
    if find_spec("grpc"):
        ours = start(*albert, "serve", "--port", str(free := _free_port()), *where, port=free)
        found["gRPC: Albert Tools"] = lambda: _wire(ours, token())
        plain = start("-m", "benchmarks.door_servers", "grpc", str(free := _free_port()), port=free)
        found["gRPC: bare"] = lambda: _plain_grpc(plain)
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {process.args!r}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens: {process.args!r}")


# The clients


@asynccontextmanager
async def _mcp_stdio(words: list[str], environment: dict[str, str], folder: Path) -> AsyncIterator[Call]:
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=folder)
    async with Client(server) as client:
        yield lambda: _checked(client)


@asynccontextmanager
async def _mcp_http(port: int, token: str) -> AsyncIterator[Call]:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)) as client,
    ):
        yield lambda: _checked(client)


async def _checked(client: Any) -> None:
    result = await client.call_tool("echo", {"text": TEXT})
    if result.is_error:
        raise RuntimeError(str(result.content))


@asynccontextmanager
async def _wire(port: int, token: str) -> AsyncIterator[Call]:
    from grpc import aio

    from albert_tools.surfaces.wire.tool_pb2 import ToolCall, ToolRequest, ToolResponse

    call = ToolCall(name="echo", arguments_json=f'{{"text": "{TEXT}"}}')
    request = ToolRequest(request_id="1", session_token=token, tool_call=call).SerializeToString()

    async with aio.insecure_channel(f"127.0.0.1:{port}", options=_OWN_CONNECTION) as channel:
        invoke = channel.unary_unary("/albert.tool.v1.ToolKernel/Invoke")

        async def checked() -> None:
            response = ToolResponse.FromString(await invoke(request))
            if response.WhichOneof("result") != "success":
                raise RuntimeError(str(response))

        yield checked


@asynccontextmanager
async def _plain_grpc(port: int) -> AsyncIterator[Call]:
    from grpc import aio

    async with aio.insecure_channel(f"127.0.0.1:{port}", options=_OWN_CONNECTION) as channel:
        invoke = channel.unary_unary("/Echo/Call")
        yield lambda: invoke(TEXT.encode())


#: Channels of one process to one address otherwise share a connection.
_OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)
