"""A network of its own, with a switch and machines whose cables can be pulled out: nothing of it is seen outside.

If a cable is pulled out, packets are lost, and no end of a connection is told.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

from tests.helpers.system import PATH

#: The address of the switch, at which a server is reached from the machines.
ADDRESS = "10.0.0.1"
#: Executes a script in a new network namespace, which ends with its last process.
_ALONE = ["unshare", "--net", "sh", "-c"]
_SWITCH = f"""
ip link add name switch type bridge && ip address add {ADDRESS}/24 dev switch && ip link set switch up && echo ready
read -r _
"""
#: The states of a port of the switch.
_DISABLED, _FORWARDS = 0, 3
_MACHINE = 'echo ready; read -r _; exec "$@" </dev/null >/dev/null 2>&1'


@cache
def missing() -> str:
    """Why there can't be such a network here; "" if there can."""
    try:
        Switch().close()
    except (OSError, AssertionError) as error:
        return f"a network can't be cut here, which needs root and Linux's network namespaces: {error}"
    return ""


class Switch:
    """The switch. It ends with the process that made it, or with `close`."""

    def __init__(self) -> None:
        """Raises OSError, AssertionError if this system can't have it."""
        self._process = _begun([*_ALONE, _SWITCH])
        self._numbers = count(2)

    @property
    def inside(self) -> list[str]:
        """The command that executes another one at the switch."""
        return _inside(self._process.pid)

    def start(self, command: Sequence[str], **options: Any) -> tuple[subprocess.Popen[bytes], str]:
        """Start a process on a machine of its own. Returns it, and the name of its cable."""
        process, number = _begun([*_ALONE, _MACHINE, "sh", *command], **options), next(self._numbers)
        cable = f"cable{number}"
        self._do(f"ip link add name {cable} type veth peer name cable netns {process.pid}")
        for words in (f"address add 10.0.0.{number}/24 dev cable", "link set cable up"):
            subprocess.run([*_inside(process.pid), "ip", *words.split()], check=True)
        self._do(f"ip link set {cable} up master switch")
        _close(process)
        return process, cable

    def plug_in(self, cable: str) -> None:
        """Connect a machine."""
        self._do(f"bridge link set dev {cable} state {_FORWARDS}")

    def pull_out(self, cable: str) -> None:
        """Disconnect a machine."""
        self._do(f"bridge link set dev {cable} state {_DISABLED}")

    def _do(self, words: str) -> None:
        # Not everybody's PATH has the folder of `bridge`.
        subprocess.run([*self.inside, *words.split()], check=True, env={**os.environ, "PATH": PATH})

    def close(self) -> None:
        """Disconnect all machines."""
        _close(self._process)
        self._process.wait()


def _inside(pid: int) -> list[str]:
    return ["nsenter", f"--net=/proc/{pid}/ns/net"]


def _begun(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """A process whose namespace is there. It goes on when its input is closed."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.readline() == b"ready\n", process.stderr.read().decode().strip()
    return process


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
