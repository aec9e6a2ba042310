"""The figures of the network: what one request may come to, whoever asks and whoever answers."""

from __future__ import annotations

from albert_tools.engine.model.bounds import KiB, MiB

#: Bytes of an answer's body, unpacked, where nobody says otherwise.
MAX_BODY = 1 * MiB
#: Bytes of a body that is sent.
MAX_SENT = 10 * MiB
#: Bytes that come before a body: headers, interim answers, and what is read together with them.
MAX_HEAD = 256 * KiB
#: Bytes that carry a body of `most` bytes: a few times as many, as in small chunks, and some.
WIRE_TIMES, WIRE_MORE = 8, 1 * MiB
#: Headers of one response, and their bytes. httpcore takes no more than 100 KiB before they are complete.
MAX_HEADERS, MAX_HEADER_BYTES = 200, 64 * KiB
#: Redirects that can be followed in one call.
MAX_FOLLOWED = 10
#: Seconds kept back from what the caller has left, to answer with a failure of our own.
MARGIN = 0.1
#: Seconds that an unused connection is kept, and how many connections there are at the most.
KEEP_SECONDS, MAX_CONNECTIONS = 5.0, 64
#: Sets of connections: by scheme, by the addresses that are open, by further certificates.
MAX_POOLS = 16

#: Methods that can be repeated without doing more than once.
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})
#: Statuses that say where else to go.
REDIRECTS = frozenset({301, 302, 303, 307, 308})
