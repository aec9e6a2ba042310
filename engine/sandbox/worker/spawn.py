"""Starts Python child processes. Imports little, because a command line starts the zygote before all other imports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure

#: The environment of zygote and workers. The tests run CPython with the same environment.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONTZPATH": ""}

_ZYGOTE = """
import sys
sys.path.extend(sys.argv[2:])
# msgspec asks for this package and needs nothing that `typing` hasn't, at a third of its time.
import typing
sys.modules["typing_extensions"] = typing
import msgspec
del sys.modules["typing_extensions"]
from albert_tools.engine.sandbox.worker import zygote
zygote.main(0, sys.argv[1])
"""


class Work(NamedTuple):
    """What the workers of a zygote do.

    Attributes:
        module: The module that makes the workers. `zygote.Worker` describes its function ``prepare``.
        packages: The packages that it needs, in addition to `albert_tools` and `msgspec`.
        paths: Further folders to import from.
        environment: The whole environment of the zygote.
    """

    module: str
    packages: tuple[str, ...] = ()
    paths: Sequence[str] = ()
    environment: Mapping[str, str] = ENVIRONMENT


#: The work of running programs.
PROGRAMS = Work("albert_tools.engine.sandbox.worker.worker", ("greenlet", "tzdata"))

#: A process, and the service's end of the socket. The other end is the standard input of the process.
Spawned = tuple["subprocess.Popen[bytes]", socket.socket]


def spawn_python(boot: str, arguments: Sequence[str], environment: Mapping[str, str], output: int) -> Spawned:
    """Start a Python process. Its standard input is a socket, and it inherits no other descriptors except `output`.

    Args:
        boot: The source that the process executes.
        arguments: The arguments of `boot`, in ``sys.argv[1:]``.
        environment: The whole environment of the process.
        output: The descriptor for printed output, including errors.

    Raises:
        Failure: `sandbox_unavailable`.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        try:
            process = subprocess.Popen(
                [sys.executable, "-S", "-s", "-P", "-X", "utf8", "-c", boot, *arguments],
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


def spawn_zygote(work: Work = PROGRAMS, output: int = subprocess.DEVNULL) -> Spawned:
    """Start a zygote. `WorkerPool.start` then takes it over, and sends it the modules to load and the limits.

    Call this before other imports, so that the zygote loads at the same time. `output` is the descriptor for what it prints.

    Raises:
        Failure: `sandbox_unavailable`.
    """
    arguments = [work.module, *_library_paths("albert_tools", "msgspec", *work.packages), *work.paths]
    return spawn_python(_ZYGOTE, arguments, work.environment, output)


def discard(spawned: Spawned) -> None:
    """End a zygote that no pool has taken over."""
    process, control = spawned
    control.close()
    process.kill()
    process.wait()


def _library_paths(*packages: str) -> list[str]:
    """The folders that contain these packages."""
    from importlib.util import find_spec

    paths = []
    for name in packages:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise Failure("sandbox_unavailable", f"the sandbox needs the package {name}: install it")
        paths.append(os.path.dirname(os.path.dirname(spec.origin)))
    return list(dict.fromkeys(paths))
