"""Blocks signals and waits for them (Linux only), by the C library. Importing `signal` is slow for a small helper process."""

from __future__ import annotations

import ctypes
import struct

from albert_tools.engine.sandbox.kernel.libc import LIBC, call

# These numbers are the same on x86_64 and aarch64.
SIGINT, SIGKILL, SIGPIPE, SIGTERM, SIGCHLD, SIGXFSZ = 2, 9, 13, 15, 17, 25
_SET_MASK = 2
#: The size of a set of signals in the C library, in bytes.
_SET_SIZE = 128


def block_only(*signals: int) -> None:
    """Block these signals, and no others."""
    call("sigprocmask", _SET_MASK, _set(signals), None)


def wait_for(*signals: int) -> int:
    """Wait for one of these signals, which must be blocked. Returns its number."""
    number = ctypes.c_int()
    LIBC.sigwait(_set(signals), ctypes.byref(number))
    return number.value


def wait_briefly(*signals: int) -> None:
    """Wait for one of these signals, which must be blocked, but at most 20 ms."""
    LIBC.sigtimedwait(_set(signals), None, struct.pack("@ll", 0, 20_000_000))


def restore(*signals: int) -> None:
    """Give these signals their default action. Python ignores or handles some of them."""
    for number in signals:
        LIBC.signal(number, None)


def _set(signals: tuple[int, ...]) -> bytes:
    return sum(1 << (number - 1) for number in signals).to_bytes(_SET_SIZE, "little")
