"""Running one Python function on hostile input, where it can do no harm.

A parser is the likeliest place for a flaw that somebody else's text can use. So what parses pages, archives and the like
runs in a short-lived process that has imported the function, shut itself in (`confined_fence`), and only then been given the
arguments. It can compute and answer. It is killed when its time is up, when the call is cancelled, when the service dies, and
after its one answer. Its answer is believed no more than the input was (`confined_answer`).

Each call starts a new process (never a fork of this one, which has threads), so that nothing is left of the call before.
Most of the time goes into importing: keep such functions in a module of their own that imports little else. A function
can import within itself what lies in Python's folders. System libraries that a C extension loads can't be opened any more by
then: import such a module at the top, or name it in `imports`.
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

#: Bytes of memory that a call may take on top of what its imports do.
MEMORY = 256 * MiB
#: Bytes of the answer, as JSON.
MAX_ANSWER = 16 * MiB
#: Bytes of an answer besides the result: a failure's texts and details.
_MAX_BESIDES = 256 * 1024
#: Calls at once in one event loop; each is a process with its imports. More wait.
MAX_AT_ONCE = 4

_SLOTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()


@lru_cache(maxsize=1)
def confinement() -> str:
    """What confines a function on this machine, a key of `confined_fence.DESCRIPTIONS`; empty when nothing does."""
    return strongest()


async def run_confined(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    seconds: float,
    memory_bytes: int = MEMORY,
    imports: Sequence[str] = (),
    result_bytes: int = MAX_ANSWER,
    kind: str | None = None,
) -> Any:
    """Call `function` with `arguments` in a process of its own that can do nothing but compute; gives what it returns.

    Args:
        function: An ordinary function of a module, found there by its name; `@primitive` may decorate it.
        arguments: By name, each JSON or bytes.
        seconds: From when the process is ready until it must have answered.
        memory_bytes: What it may take on top of its imports.
        imports: Modules to import beforehand, besides its own.
        result_bytes: The largest answer, as JSON.
        kind: A weaker confinement than the machine offers, for tests.

    Raises:
        Failure: the function's own `Failure`; `exception` for any other exception that it raises; `timeout`, `cpu_limit`,
            `memory_limit`, `result_limit`; `not_json`; `sandbox_violation` when it tries what only an attacker does; `worker_died`
            when it crashes; `sandbox_unavailable` when nothing confines it here, or it can't be imported.
        TypeError: the function can't be found by its name, is a coroutine function, or an argument is not JSON.
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
        "memory_bytes": memory_bytes,
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
    """The module and the name that another process finds the function by.

    Raises:
        TypeError: another process can't find it.
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
    """The message of the arguments: those that are JSON, and those that are bytes."""
    plain = {name: value for name, value in arguments.items() if not isinstance(value, bytes)}
    packed = {name: b64encode(value).decode() for name, value in arguments.items() if isinstance(value, bytes)}
    return frame(json.dumps([plain, packed], allow_nan=False).encode())


def _paths(module: str) -> list[str]:
    """Where the process looks for modules, besides Python's own: this process's path, and the folder of the function's package.

    The current folder is left out: tools may write to it.
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
