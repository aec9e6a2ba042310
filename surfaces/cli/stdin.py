"""Reads stdin in such a way that Ctrl-C interrupts it.

Under asyncio, an interrupt cancels the running task. The task does not notice this while it blocks on a terminal. Therefore
Python's own interrupt handler is restored while stdin is read.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def read_stdin(limit: int) -> bytes | None:
    """Reads up to `limit` + 1 bytes. The extra byte shows the caller that the input is too long. Returns None if there is no stdin.

    Raises:
        OSError: stdin can't be read.
        KeyboardInterrupt: the user pressed Ctrl-C.
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
