"""Stdin, read so that Ctrl-C ends the reading.

Under asyncio an interrupt only asks the running task to stop, which it can't hear while it waits for a terminal. So for as
long as somebody types, an interrupt is Python's own again.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def read_stdin(limit: int) -> bytes | None:
    """At most `limit` bytes and one more, which tells that there are more; None when there is no stdin.

    Raises:
        OSError: it can't be read.
        KeyboardInterrupt: at once.
    """
    if sys.stdin is None:
        return None
    with _interruptible():
        return sys.stdin.buffer.read(limit + 1)


@contextmanager
def _interruptible() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
