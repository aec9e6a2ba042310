"""A listening socket inside another process's network namespace: a proxy out here serves it, and nothing runs in there for it.

Entering a namespace is for a process of its own, with one thread; this file is also that process, run with the standard
library only.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import subprocess
import sys

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
#: ioctl: the user namespace that owns a namespace (include/uapi/linux/nsfs.h).
_NS_GET_USERNS = 0xB701
_SECONDS = 20


def listen(pid: int, port: int) -> socket.socket:
    """A socket that listens on ``127.0.0.1`` port `port` in the network namespace of the process `pid`.

    Raises:
        Failure: `sandbox_unavailable`.
    """
    from albert_tools.engine.model.failure import Failure

    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-S", __file__, str(pid), str(port), str(theirs.fileno())]
        ours.settimeout(_SECONDS)
        try:
            done = subprocess.run(
                command, env={}, cwd="/", pass_fds=[theirs.fileno()], capture_output=True, timeout=_SECONDS, check=False
            )
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure("sandbox_unavailable", f"the command can't be given a network: {error}") from None
        if not descriptors:
            why = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise Failure("sandbox_unavailable", f"the command can't be given a network: {why}")
        return socket.socket(fileno=descriptors[0])


def main() -> None:
    """Enter the network of the process that the arguments name, listen on a port, hand the socket over."""
    pid, port, channel = (int(argument) for argument in sys.argv[1:4])
    libc = ctypes.CDLL(None, use_errno=True)
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    # In the user namespace that made it, its maker may do everything to it.
    owner = fcntl.ioctl(network, _NS_GET_USERNS)
    for handle, kind in ((owner, _CLONE_NEWUSER), (network, _CLONE_NEWNET)):
        if libc.setns(handle, kind) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    with socket.socket() as listener, socket.socket(fileno=channel) as out:
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        out.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))])


if __name__ == "__main__":
    main()
