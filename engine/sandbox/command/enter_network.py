"""Enters another process's network namespace, listens there on a port, and sends the socket to the service.

This is a separate program (`standalone`), because only a process with one thread can enter a namespace.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import sys

from albert_tools.engine.sandbox.kernel.libc import call

#: The modules in `kernel` that this module imports, for `standalone`.
KERNEL = ("libc",)

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
#: ioctl that returns the user namespace which owns a namespace (include/uapi/linux/nsfs.h).
_NS_GET_USERNS = 0xB701


def main() -> None:
    """The arguments are the process, the port, and the descriptor of the socket to which the listening socket is sent."""
    pid, port, channel = (int(argument) for argument in sys.argv[1:4])
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    # The creator of a user namespace has all rights in it.
    owner = fcntl.ioctl(network, _NS_GET_USERNS)
    call("setns", owner, _CLONE_NEWUSER)
    call("setns", network, _CLONE_NEWNET)
    with socket.socket() as listener, socket.socket(fileno=channel) as out:
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        out.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))])
