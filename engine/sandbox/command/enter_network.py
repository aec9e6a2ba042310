"""Enters another process's network namespace, listens there on a port, and hands the socket over.

A program of its own (`standalone`), because only a process with one thread can enter a namespace.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import sys

from albert_tools.engine.sandbox.kernel.libc import call

#: The kernel's modules that this one imports, for `standalone`.
KERNEL = ("libc",)

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
#: ioctl: the user namespace that owns a namespace (include/uapi/linux/nsfs.h).
_NS_GET_USERNS = 0xB701


def main() -> None:
    """The arguments are the process, the port, and the descriptor of a socket to hand the listening one over."""
    pid, port, channel = (int(argument) for argument in sys.argv[1:4])
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    # In the user namespace that made it, its maker may do everything to it.
    owner = fcntl.ioctl(network, _NS_GET_USERNS)
    call("setns", owner, _CLONE_NEWUSER)
    call("setns", network, _CLONE_NEWNET)
    with socket.socket() as listener, socket.socket(fileno=channel) as out:
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        out.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))])
