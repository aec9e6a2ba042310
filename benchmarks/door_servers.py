"""One function, and the servers of others that serve it: ``python -m benchmarks.door_servers sdk|fastmcp|grpc [PORT]``.

Albert Tools serves the same function as a primitive of the application.
"""

from __future__ import annotations

import asyncio
import sys

from albert_tools import primitive


@primitive(effects=["read"])
async def echo(text: str) -> str:
    """Return the text.

    Args:
        text: Any text.
    """
    return text


def sdk(port: int | None) -> None:
    """Serve with the official SDK of MCP, over stdio or HTTP."""
    from mcp.server import MCPServer

    server = MCPServer("echo", log_level="ERROR")
    server.tool()(echo.function)
    if port is None:
        server.run("stdio")
    else:
        asyncio.run(server.run_streamable_http_async(port=port))


def fastmcp(port: int | None) -> None:
    """Serve with FastMCP, over stdio or HTTP."""
    from fastmcp import FastMCP

    server = FastMCP("echo")
    server.tool(echo.function)
    if port is None:
        server.run("stdio", show_banner=False)
    else:
        server.run("http", port=port, show_banner=False, log_level="error")


def grpc(port: int | None) -> None:
    """Serve bytes with gRPC, without messages of a schema."""
    from grpc import aio, unary_unary_rpc_method_handler
    from grpc import method_handlers_generic_handler as handlers

    async def answer(request: bytes, _: object) -> bytes:
        return (await echo.function(request.decode())).encode()

    async def serve() -> None:
        server = aio.server()
        server.add_generic_rpc_handlers((handlers("Echo", {"Call": unary_unary_rpc_method_handler(answer)}),))
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        await server.wait_for_termination()

    asyncio.run(serve())


if __name__ == "__main__":
    {"sdk": sdk, "fastmcp": fastmcp, "grpc": grpc}[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else None)
