"""A server at a distance: passes bytes between clients on a port and a server on a Unix socket, and delays them in both ways."""

from __future__ import annotations

import asyncio
import sys


async def serve(socket: str, milliseconds: float) -> None:
    """Print the port, and pass bytes on. An answer comes `milliseconds` later than it would."""
    loop, delay = asyncio.get_running_loop(), milliseconds / 2000

    async def passed(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            loop.call_later(delay, to.write, data)
        loop.call_later(delay, to.close)

    async def accept(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_unix_connection(socket)
        await asyncio.gather(passed(client, to_server), passed(server, to_client), return_exceptions=True)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], float(sys.argv[2])))
