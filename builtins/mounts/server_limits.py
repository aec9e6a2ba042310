"""The limits of what a mounted server may send, and of the time that it may take."""

from __future__ import annotations

from albert_tools.engine.model.bounds import MiB

#: Bytes of one message. Reading one takes some times as much memory.
MAX_MESSAGE = 8 * MiB
#: All messages from the beginning of a call until the next one begins: their bytes, and their number. The SDK starts a task for
#: each request of a server.
MAX_UNASKED, MAX_MESSAGES = 64 * MiB, 5000
#: Seconds of one call, if the rules don't set fewer.
CALL_SECONDS = 300.0
#: Seconds to start a server and list its tools. The first start of a server may install it.
START_SECONDS = 60.0
#: Seconds after which the tools of a running server are compared with the accepted ones again.
CHECK_SECONDS = 60.0
#: Seconds before a server that has failed twice is started again, doubled after each further failure, and the most seconds.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
#: Seconds for which a server may refuse to list its tools until it is connected to anew.
REFUSING_SECONDS = 60.0
#: Seconds to close a connection.
CLOSE_SECONDS = 5.0


def too_much(size: int, count: int) -> str | None:
    """Why a server is stopped that has sent so much in one call; None if it may go on."""
    if size > MAX_UNASKED:
        return f"it sent more than {MAX_UNASKED // MiB} MiB in one call"
    return f"it sent more than {MAX_MESSAGES:,} messages in one call" if count > MAX_MESSAGES else None


def too_long() -> str:
    """Why a server was stopped that sent too long a message."""
    return f"it sent a message of more than {MAX_MESSAGE // MiB} MiB"
