"""Starting the zygote, apart from everything that uses it, so that it can be the first thing a process does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from albert_tools.engine.model.failure import Failure

#: What zygote and workers have as their environment; the same for CPython as the oracle of the tests.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}

_BOOT = """
import sys
sys.path.extend(sys.argv[2:])
# msgspec asks for this package and needs nothing that `typing` hasn't, at a third of its time.
import typing
sys.modules["typing_extensions"] = typing
import msgspec
del sys.modules["typing_extensions"]
from albert_tools.engine.sandbox.worker import zygote
zygote.main(int(sys.argv[1]))
"""

#: The zygote's process and the control socket.
Spawned = tuple["subprocess.Popen[bytes]", socket.socket]


def spawn_zygote() -> Spawned:
    """Start the zygote, to be handed to `Sandbox.start`, which tells it what to load and which limits hold.

    It can be called before anything else is known or imported, so that both go on side by side.

    Raises:
        Failure: `sandbox_unavailable`.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    command = [sys.executable, "-S", "-s", "-P", "-X", "utf8", "-c", _BOOT, str(theirs.fileno())]
    try:
        process = subprocess.Popen(
            [*command, *_library_paths()],
            env=ENVIRONMENT,
            cwd="/",
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise Failure("sandbox_unavailable", f"the sandbox can't be started: {error.strerror}") from error
    except Failure:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return process, ours


def _library_paths() -> list[str]:
    """The folders that hold this package and the two libraries that a worker needs."""
    from importlib.util import find_spec

    paths = []
    for name in ("albert_tools", "msgspec", "greenlet"):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise Failure("sandbox_unavailable", f"the sandbox needs the package {name}: install it")
        paths.append(os.path.dirname(os.path.dirname(spec.origin)))
    return list(dict.fromkeys(paths))
