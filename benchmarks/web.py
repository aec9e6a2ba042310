"""The cost of authorizing and recording requests: `http_request` compared with plain httpx.

Server and client are two processes of one machine, so the client takes nearly all of the time. On a real network the difference
would not be noticeable. Each side has one open connection. The sides take turns, in blocks of requests. The second column is for a
server that answers after a few milliseconds, like a server nearby.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from albert_tools import ToolService
from albert_tools.builtins.net.client import Client, HttpRequest

#: Requests in a block.
BLOCK = 50

#: Answers every request with 10 KiB, after the number of milliseconds that is in the path.
_SERVER = """
import asyncio
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            await asyncio.sleep(int(head.split(b" ", 2)[1][1:] or 0) / 1000)
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: 10240\\r\\n\\r\\n" + b"x" * 10240)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""

Request = Callable[[], Awaitable[Any]]


def table(rounds: int) -> list[str]:
    """The table, as lines of Markdown."""
    with _server() as port:
        found = {delay: asyncio.run(_measured(f"http://127.0.0.1:{port}/{delay}", rounds)) for delay in (0, 5)}
    lines = ["| a request, answered | at once, µs | ratio | after 5 ms, µs | ratio |", "|---|---:|---:|---:|---:|"]
    for name in found[0]:
        cells = []
        for times in found.values():
            bare = next(iter(times.values()))
            cells += [f"{times[name] * 1e6:,.0f}", f"{times[name] / bare:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


@contextmanager
def _server() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


async def _measured(url: str, rounds: int) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="albert-web-")))
        (place / "work" / ".albert").mkdir(parents=True)
        rules = {"allow": ["http_request"], "tools": {"http_request": {"allowed_hosts": ["127.0.0.1"]}}}
        service = await stack.enter_async_context(
            ToolService.open(home=place / "home", workspace=place / "work", governance=rules)
        )
        bare = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
        client = Client()
        stack.push_async_callback(client.aclose)
        context = _Context()

        async def fresh() -> None:
            async with httpx.AsyncClient(trust_env=False) as once:
                await once.get(url)

        async def invoked() -> None:
            result = await service.invoke("http_request", {"url": url})
            assert result.ok, result.error

        sides: dict[str, Request] = {
            "httpx, one client for all": lambda: bare.get(url),
            "our client alone": lambda: client.fetch(context, HttpRequest("GET", url)),
            "`http_request`: judged, recorded, durable": invoked,
            "httpx, a client for each": fresh,
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                await side()
                # This side loads certificates for each request and is slow, so few requests are enough.
                block = 2 if side is fresh else BLOCK
                started = time.perf_counter()
                for _ in range(block):
                    await side()
                times[name].append((time.perf_counter() - started) / block)
    return {name: statistics.median(taken) for name, taken in times.items()}


class _Context(SimpleNamespace):
    """The attributes of a call's context that the client uses."""

    def __init__(self) -> None:
        from albert_tools.engine.policy.addresses import LOCALHOST

        super().__init__(network=SimpleNamespace(named=LOCALHOST), remaining=30.0, settings={})

    def effect(self, kind: str, **facts: Any) -> None:
        """Ignore it."""
