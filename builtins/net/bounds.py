"""The limits of one request and its response."""

from __future__ import annotations

from albert_tools.engine.model.bounds import KiB, MiB

#: Default: bytes of a response's body, decompressed.
MAX_BODY = 1 * MiB
#: Bytes of a request's body.
MAX_SENT = 10 * MiB
#: Bytes that are read before the body starts: headers, interim responses, and the beginning of the body.
MAX_HEAD = 256 * KiB
#: A body of n bytes may take WIRE_TIMES × n + WIRE_MORE bytes on the wire. The factor allows for small chunks.
WIRE_TIMES, WIRE_MORE = 8, 1 * MiB
#: Headers of one response, and their bytes. httpcore fails if the headers exceed 100 KiB.
MAX_HEADERS, MAX_HEADER_BYTES = 200, 64 * KiB
#: Redirects that one call can follow.
MAX_FOLLOWED = 10
#: Seconds that are reserved at the end of the caller's time, to return a proper failure.
MARGIN = 0.1
#: Seconds for which an idle connection stays open, and the number of connections.
KEEP_SECONDS, MAX_CONNECTIONS = 5.0, 64
#: Connection pools. There is one pool for each combination of scheme, open addresses and certificate file.
MAX_POOLS = 16

#: Idempotent methods.
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})
#: Statuses of redirects.
REDIRECTS = frozenset({301, 302, 303, 307, 308})
