"""Starts Python child processes. Imports little, because a command line starts the zygote before all other imports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from albert_tools.engine.model.failure import Failure

#: The environment of zygote and workers. The tests run CPython with the same environment.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}

_ZYGOTE = """
import sys
sys.path.extend(sys.argv[1:])
# msgspec asks for this package and needs nothing that `typing` hasn't, at a third of its time.
import typing
sys.modules["typing_extensions"] = typing
import msgspec
del sys.modules["typing_extensions"]
from albert_tools.engine.sandbox.worker import zygote
zygote.main(0)
"""

#: A process, and the service's end of the socket. The other end is the standard input of the process.
Spawned = tuple["subprocess.Popen[bytes]", socket.socket]


def spawn_python(
    options: Sequence[str], boot: str, paths: Sequence[str], environment: Mapping[str, str], output: int
) -> Spawned:
    """Start a Python process. Its standard input is a socket, and it inherits no other descriptors except `output`.

    Args:
        options: Options of the interpreter.
        boot: The source that the process executes.
        paths: Arguments of `boot`: the folders to import from.
        environment: The whole environment of the process.
        output: The descriptor for printed output, including errors.

    Raises:
        Failure: `sandbox_unavailable`.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        try:
            process = subprocess.Popen(
                [sys.executable, *options, "-X", "utf8", "-c", boot, *paths],
                env=environment,
                cwd="/",
                stdin=theirs.fileno(),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise Failure(
                "sandbox_unavailable", f"the sandbox can't be started: {error.strerror}", retryable=True
            ) from error
    ours.setblocking(False)
    return process, ours


def spawn_zygote() -> Spawned:
    """Start the zygote. `Sandbox.start` then takes it over, and sends it the modules to load and the limits.

    Call this before other imports, so that the zygote loads at the same time.

    Raises:
        Failure: `sandbox_unavailable`.
    """
    return spawn_python(("-S", "-s", "-P"), _ZYGOTE, _library_paths(), ENVIRONMENT, subprocess.DEVNULL)


def _library_paths() -> list[str]:
    """The folders that contain this package and the two libraries that a worker needs."""
    from importlib.util import find_spec

    paths = []
    for name in ("albert_tools", "msgspec", "greenlet"):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise Failure("sandbox_unavailable", f"the sandbox needs the package {name}: install it")
        paths.append(os.path.dirname(os.path.dirname(spec.origin)))
    return list(dict.fromkeys(paths))
