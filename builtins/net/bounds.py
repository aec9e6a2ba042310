"""The limits of one request and its response."""

from __future__ import annotations

from albert_tools.engine.model.bounds import KiB, MiB

#: Default: bytes of a response's body, decompressed.
MAX_BODY = 1 * MiB
#: Bytes of a request's body.
MAX_SENT = 10 * MiB
#: Bytes read before a body: headers, interim responses, and what is read along with them.
MAX_HEAD = 256 * KiB
#: Bytes on the wire for a body of n bytes: n times the first, for small chunks, plus the second.
WIRE_TIMES, WIRE_MORE = 8, 1 * MiB
#: Headers of one response, and their bytes. httpcore takes no more than 100 KiB before they are complete.
MAX_HEADERS, MAX_HEADER_BYTES = 200, 64 * KiB
#: Redirects that one call can follow.
MAX_FOLLOWED = 10
#: Seconds reserved of the time that the caller has left, to return a proper failure.
MARGIN = 0.1
#: Seconds that an idle connection is kept, and the number of connections.
KEEP_SECONDS, MAX_CONNECTIONS = 5.0, 64
#: Pools of connections: one for each scheme, set of open addresses and certificate file.
MAX_POOLS = 16

#: Idempotent methods.
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})
#: Statuses of redirects.
REDIRECTS = frozenset({301, 302, 303, 307, 308})
