"""Creates a listening socket inside a command's network namespace. A proxy outside serves it, so no extra process runs inside."""

from __future__ import annotations

import socket
import subprocess

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.command import enter_network
from albert_tools.engine.sandbox.command.standalone import python, script

_SECONDS = 20
_ENTER = script("enter_network", enter_network.KERNEL) + "main()"


def listen(pid: int, port: int) -> socket.socket:
    """A socket that listens on ``127.0.0.1`` port `port` in the network namespace of the process `pid`.

    Raises:
        Failure: `sandbox_unavailable`.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [python(), "-I", "-S", "-c", _ENTER, str(pid), str(port), str(theirs.fileno())]
        ours.settimeout(_SECONDS)
        try:
            done = subprocess.run(
                command, env={}, cwd="/", pass_fds=[theirs.fileno()], capture_output=True, timeout=_SECONDS, check=False
            )
            # The child's copy of this end is closed by now. So if no socket was sent, the next line reads the end of the stream.
            theirs.close()
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure("sandbox_unavailable", f"the command's network can't be set up: {error}") from None
        if not descriptors:
            why = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise Failure("sandbox_unavailable", f"the command's network can't be set up: {why}")
        return socket.socket(fileno=descriptors[0])
