"""Runs one Python function on untrusted input in a confined process.

Parsers of untrusted text are likely to have exploitable flaws. So parsers of pages, archives and similar formats run in a
short-lived process. The process first imports the function, then confines itself (`confined_fence`), and only then receives the
arguments. It can compute and answer, nothing more. It is killed after its answer, after a timeout, when the call is cancelled,
and when the service dies. Its answer is as untrusted as the input (`confined_answer`).

Each call starts a new process, so that no data remains from an earlier call. The process is not a fork of this one, because this
one has threads. Most of the time is spent on imports, so put such functions in a module that imports little else. During the
call, the function can still import modules in Python's folders, but a C extension can't load system libraries any more. Import
such modules at the top of the function's module, or name them in `imports`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import weakref
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.sandbox.worker.confined_answer import answer_of
from albert_tools.engine.sandbox.worker.confined_fence import DESCRIPTIONS, strongest
from albert_tools.engine.sandbox.worker.confined_process import ConfinedProcess
from albert_tools.engine.sandbox.worker.json_frames import frame

#: The most bytes of memory of a call, beyond the memory of the imports.
MEMORY = 256 * MiB
#: The most bytes of the answer, as JSON.
MAX_ANSWER = 16 * MiB
#: The most bytes of an answer in addition to the result: the texts and details of a failure.
_MAX_BESIDES = 256 * 1024
#: The most simultaneous calls in one event loop. Each call is a process with its own imports. Further calls wait.
MAX_AT_ONCE = 4

_SLOTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()


@lru_cache(maxsize=1)
def confinement() -> str:
    """The confinement of functions on this machine, a key of `confined_fence.DESCRIPTIONS`; empty if there is none."""
    return strongest()


async def run_confined(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    seconds: float,
    imports: Sequence[str] = (),
    result_bytes: int = MAX_ANSWER,
    kind: str | None = None,
) -> Any:
    """Call `function` with `arguments` in a confined process of its own. Returns the result of the function.

    Args:
        function: An ordinary function that is an attribute of a module. `@primitive` may decorate it.
        arguments: The arguments by name. Each is JSON or bytes.
        seconds: The timeout. It starts when the process is ready.
        imports: Modules to import before the call, in addition to the module of the function.
        result_bytes: The most bytes of the answer, as JSON.
        kind: A weaker confinement than the machine supports, for tests.

    Raises:
        Failure: the function's own `Failure`; `exception` for any other exception that it raises; `timeout`, `cpu_limit`,
            `memory_limit`, `result_limit`; `not_json`; `sandbox_violation` if it makes a call that only an attacker makes;
            `worker_died` if it crashes; `sandbox_unavailable` if this machine has no confinement, or the import fails.
        TypeError: the function can't be found by its name, or is a coroutine function, or an argument is not JSON.
    """
    module, name = _importable(function)
    fence = confinement() if kind is None else kind
    if fence not in DESCRIPTIONS:
        raise Failure(
            "sandbox_unavailable",
            f"{name} is only run confined, and this machine has neither seccomp nor Landlock",
            hint="run it on Linux 5.13 or newer",
        )
    settings = {
        "module": module,
        "name": name,
        "imports": list(imports),
        "memory_bytes": MEMORY,
        "cpu_seconds": math.ceil(seconds) + 1,
        "result_bytes": result_bytes,
        "kind": fence,
        "parent": os.getpid(),
    }
    message = _packed(arguments)
    loop = asyncio.get_running_loop()
    async with _SLOTS.setdefault(loop, asyncio.Semaphore(MAX_AT_ONCE)):
        process = ConfinedProcess(name, _paths(module), result_bytes + _MAX_BESIDES, loop)
        try:
            await process.prepare(frame(json.dumps([settings]).encode()))
            return answer_of(name, await process.ask(message, seconds), result_bytes)
        finally:
            await process.end()


def _importable(function: Callable[..., Any]) -> tuple[str, str]:
    """The module and the name under which another process can import the function.

    Raises:
        TypeError: another process can't import it.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if asyncio.iscoroutinefunction(function):
        raise TypeError(f"{name} is async; only an ordinary function can run confined")
    found: Any = sys.modules.get(str(module))
    for part in name.split("."):
        found = getattr(found, part, None)
    if module == "__main__" or (found is not function and getattr(found, "function", None) is not function):
        raise TypeError(
            f"{name or function!r} can't be run confined: it isn't found by its name in a module that can be imported"
        )
    return str(module), name


def _packed(arguments: Mapping[str, Any]) -> bytes:
    """The message with the arguments: first the JSON arguments, then the bytes arguments."""
    plain = {name: value for name, value in arguments.items() if not isinstance(value, bytes)}
    packed = {name: b64encode(value).decode() for name, value in arguments.items() if isinstance(value, bytes)}
    return frame(json.dumps([plain, packed], allow_nan=False).encode())


def _paths(module: str) -> list[str]:
    """The folders from which the process imports, in addition to Python's own: `sys.path`, and the folder of the function's
    package.

    The current folder is left out, because tools may write to it.
    """
    here = os.path.realpath(os.getcwd()) if os.path.isdir(".") else ""
    known = [p for p in sys.path if os.path.isabs(p) and os.path.exists(p) and os.path.realpath(p) != here]
    for name in ("albert_tools", module.partition(".")[0]):
        top = sys.modules.get(name)
        origin = getattr(top, "__file__", None)
        if origin:
            folder = os.path.dirname(os.path.abspath(origin))
            known.append(os.path.dirname(folder) if hasattr(top, "__path__") else folder)
        known += [os.path.dirname(os.path.abspath(p)) for p in getattr(top, "__path__", ()) if not origin]
    return list(dict.fromkeys(known))
