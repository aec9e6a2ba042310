"""A protocol over stdin and stdout has these streams for itself, whatever else this process and its children read and print."""

from __future__ import annotations

import fcntl
import os


def claim_streams() -> tuple[int, int]:
    """Private duplicates of stdin and stdout. From now on, stdin is empty, and what is printed goes to stderr."""
    return _claim(0, os.open(os.devnull, os.O_RDONLY)), _claim(1, os.dup(2))


def _claim(stream: int, instead: int) -> int:
    """A private duplicate of a standard stream. What uses the stream from now on gets `instead`."""
    private = fcntl.fcntl(stream, fcntl.F_DUPFD_CLOEXEC, 3)
    os.dup2(instead, stream)
    os.close(instead)
    return private
