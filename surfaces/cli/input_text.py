"""Reads the text of a file or of stdin, in such a way that Ctrl-C interrupts it.

Under asyncio, an interrupt cancels the running task. The task does not notice this while it blocks on a terminal. Therefore
Python's own interrupt handler is restored while stdin is read.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from albert_tools.engine.model.failure import Failure


def read_text(name: str, limit: int) -> str:
    """The text of a file, or of stdin for the name ``-``. It has at most `limit` bytes.

    Raises:
        Failure: `io_error`, `too_large`, `encoding_error`.
        KeyboardInterrupt: the user pressed Ctrl-C.
    """
    source = "stdin" if name == "-" else repr(name)
    try:
        if name != "-":
            with Path(name).open("rb") as file:
                data = file.read(limit + 1)
        elif sys.stdin is None:
            raise Failure("io_error", "there is no stdin")
        else:
            with _interruptible():
                data = sys.stdin.buffer.read(limit + 1)
    except OSError as error:
        hint = "name a file that exists, or - for stdin" if isinstance(error, FileNotFoundError) else None
        raise Failure("io_error", f"{source} can't be read: {error.strerror or error}", hint=hint) from error
    except ValueError as error:
        raise Failure("io_error", f"{source} is not a path: {error}") from error
    if len(data) > limit:
        raise Failure("too_large", f"{source} is larger than {limit:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Failure("encoding_error", f"{source} is not UTF-8 text: byte {error.start:,} can't be read") from error


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
