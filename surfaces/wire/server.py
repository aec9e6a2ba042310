"""The gRPC server: its sockets, its limits, and the services of others that it includes, health and reflection."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.file_lock import open_locked, release
from albert_tools.service import ToolService
from albert_tools.store.private_folder import make_private
from albert_tools.surfaces.wire.kernel import SERVICE, Kernel
from albert_tools.surfaces.wire.receive import MAX_MESSAGE, BoundedReads

#: Seconds that requests may take after the server was told to stop.
GRACE = 5.0
#: Bytes of the path of a Unix socket.
MAX_SOCKET_PATH = 100

#: Connections to one address.
MAX_CONNECTIONS = 256
#: Requests on one connection at the same time. The client's gRPC holds back further ones.
_MAX_STREAMS = 64
#: Requests on all connections to both addresses.
_ALL_STREAMS = 2 * MAX_CONNECTIONS * _MAX_STREAMS

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.max_concurrent_streams", _MAX_STREAMS),
    # Without these two, gRPC would receive more of a message than a method has asked for, and share a port with another server.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.so_reuseport", 0),
    # Bytes of a request that gRPC receives before a method reads it.
    ("grpc.http2.lookahead_bytes", 4096),
    # Connections without a request are closed. Clients connect again by themselves.
    ("grpc.server_handshake_timeout_ms", 5_000),
    # For each address. So other users of the machine, who can connect to the port, can't use up the socket's connections or the
    # files of this process.
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
    ("grpc.max_connection_idle_ms", 60_000),
    # By default, gRPC cancels requests of any client while 1,000 wait for a method. These limits can't be reached.
    ("grpc.server.max_pending_requests", _ALL_STREAMS),
    ("grpc.server.max_pending_requests_hard_limit", _ALL_STREAMS),
)


@asynccontextmanager
async def serving(
    service: ToolService, socket: Path | None = None, port: int | None = None
) -> AsyncIterator[list[str]]:
    """Serve a service on a Unix socket and, with `port`, on 127.0.0.1. Yields the addresses, as gRPC's clients write them.

    Args:
        service: The service.
        socket: The path of the socket; by default ``wire/albert.sock`` in the folder of the state. Its folder is private.
        port: The port; 0 for a free one.

    Raises:
        Failure: `exists`: another server uses the socket or the port; `io_error`: the folder is open to others;
            `invalid_arguments`: the path is too long; `not_found`: the service has no content store.
    """
    if service.contents(None) is None:
        raise Failure("not_found", "this service has no content store, so the wire protocol can't be served")
    path = Path(os.path.abspath(socket if socket is not None else service.home.local.state / "wire" / "albert.sock"))
    with _own(path):
        # There is no bound of requests for both addresses: a client that takes no answers could use it up.
        server = grpc.aio.server(interceptors=[BoundedReads(SERVICE)], options=_OPTIONS)
        server.add_generic_rpc_handlers((Kernel(service).handler(),))
        checks = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(checks, server)
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        for name in ("", SERVICE):
            await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
        addresses = [f"unix:{path}"]
        _listen(server, addresses[0])
        if port is not None:
            addresses.append(f"127.0.0.1:{_listen(server, f'127.0.0.1:{port}')}")
        await server.start()
        try:
            yield addresses
        finally:
            await checks.enter_graceful_shutdown()
            await server.stop(GRACE)
            with suppress(FileNotFoundError):
                path.unlink()


@contextmanager
def _own(path: Path) -> Iterator[None]:
    """Keep other servers from the socket. gRPC would take it away from them."""
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        message = f"the path of the socket is too long: {path}"
        raise Failure("invalid_arguments", message, hint="name a shorter one with --socket")
    try:
        make_private(path.parent, "the socket")
    except Failure as failure:
        # The usual hint would change the mode of a shared folder such as /tmp.
        raise failure.copy(hint="leave --socket out, or name a socket in a folder that only you can enter") from None
    try:
        handle = open_locked(Path(f"{path}.lock"))
    except BlockingIOError:
        hint = "use that one, or name another with --socket"
        raise Failure("exists", f"another server uses the socket {path}", hint=hint) from None
    try:
        yield
    finally:
        release(handle)


def _listen(server: grpc.aio.Server, address: str) -> int:
    """Listen on an address. Returns its port."""
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if not port:
        raise Failure("exists", f"can't listen on {address}", hint="another program may use it; name another port")
    return int(port)
