"""Runs one Python function on untrusted input in a confined process.

Parsers of untrusted text are likely to have exploitable flaws. So parsers of pages, archives and similar formats run in a
short-lived process. A zygote (`zygote`) imports the function and then forks the process, which confines itself (`confined_fence`),
and only then receives the arguments. It can compute and answer, nothing more. Both are killed after the answer, after a timeout,
when the call is cancelled, and when the service dies. The answer is as untrusted as the input.

Each call starts a new zygote with what the function needs. The process is not a fork of this one, because this one has threads.
Most of the time is spent on imports, so put such functions in a module that imports little else. During the call, the function can
still import modules in Python's folders, but a C extension can't load system libraries any more. Import such modules at the top of
the function's module, or name them in `imports`.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import weakref
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB, RunLimits
from albert_tools.engine.model.turns import CLIENT, Turns
from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.child import DEATHS
from albert_tools.engine.sandbox.worker.confined_fence import DESCRIPTIONS, strongest
from albert_tools.engine.sandbox.worker.function_pool import FunctionPool
from albert_tools.engine.sandbox.worker.spawn import Work, spawn_zygote

#: The most bytes of memory of a call, beyond the memory of the imports.
MEMORY = 256 * MiB
#: The most bytes of the answer, as JSON.
MAX_RESULT = 16 * MiB
#: The most bytes of printed output that are stored, from its end. A report of a crash contains them.
MAX_PRINTED = 4096
#: The most simultaneous calls in one event loop, and those of one session. Each call has a zygote with its own imports. Further
#: calls wait.
MAX_AT_ONCE, MAX_OF_SESSION = 4, 2

_ENVIRONMENT = {
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    # A process with several threads can't be forked safely.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_TURNS = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]()


@lru_cache(maxsize=1)
def confinement() -> str:
    """The confinement of functions on this machine, a key of `confined_fence.DESCRIPTIONS`; empty if there is none."""
    return strongest()


async def run_confined(
    function: Callable[..., Any], arguments: Mapping[str, Any], *, seconds: float, imports: Sequence[str] = ()
) -> Any:
    """Call `function` with `arguments` in a confined process of its own. Returns the result of the function.

    Args:
        function: An ordinary function that is an attribute of a module. `@primitive` may decorate it.
        arguments: The arguments by name. Each is JSON or bytes.
        seconds: The timeout. It starts when the process is ready.
        imports: Modules to import before the call, in addition to the module of the function.

    Raises:
        Failure: the function's own `Failure`; `exception` for any other exception that it raises; `timeout`, `cpu_limit`,
            `memory_limit`, `result_limit`; `not_json`; `sandbox_violation` if it makes a call that only an attacker makes;
            `worker_died` if it crashes; `sandbox_unavailable` if this machine has no confinement, or the import fails.
        TypeError: the function can't be found by its name, or is a coroutine function, or an argument is not JSON.
    """
    module, name = _importable(function)
    kind = confinement()
    if kind not in DESCRIPTIONS:
        raise Failure(
            "sandbox_unavailable",
            f"{name} is only run confined, and this machine has neither seccomp nor Landlock",
            hint="run it on Linux 5.13 or newer",
        )
    given = _packed(arguments)
    limits = RunLimits(memory_bytes=MEMORY, cpu_seconds=math.ceil(seconds) + 1)
    work = Work("albert_tools.engine.sandbox.worker.confined_worker", paths=_paths(module), environment=_ENVIRONMENT)
    loop = asyncio.get_running_loop()
    async with _TURNS.setdefault(loop, Turns(MAX_OF_SESSION, MAX_AT_ONCE)).of(CLIENT.get()):
        pool = FunctionPool(name, work, limits, seconds=seconds, max_bytes=MAX_RESULT, idle=0)
        pool.kind = kind
        pool.expect([module, name, *imports])
        with _Printed(loop) as printed:
            spawned = spawn_zygote(work, printed.end)
            try:
                try:
                    await pool.start(spawned)
                except Failure as failure:
                    raise _unavailable(name, failure.message) from None
                return export(await pool.call(given), MAX_RESULT)
            except Unexportable as error:
                raise Failure(error.code, error.sentence(f"the result of {name}")) from None
            except Failure as failure:
                if failure.code == "worker_died" or failure.code in DEATHS.values():
                    failure.details |= printed.details()
                raise
            finally:
                if spawned[0].poll() is None:
                    # Kill the whole process group, because without a system call filter the process could have started others.
                    os.killpg(spawned[0].pid, signal.SIGKILL)
                await pool.close()


class _Printed:
    """The end of what a process prints. `end` is the descriptor that it prints to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._kept = bytearray()

    def __enter__(self) -> _Printed:
        self._pipe, self.end = os.pipe()
        os.set_blocking(self._pipe, False)
        self._loop.add_reader(self._pipe, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        os.close(self.end)

    def details(self) -> dict[str, Any]:
        """What was printed last, for the details of a failure."""
        self._read()
        return {"printed": self._kept.decode("utf-8", "replace")} if self._kept else {}

    def _read(self) -> None:
        try:
            self._kept += os.read(self._pipe, 1 << 16)
        except OSError:
            return
        del self._kept[:-MAX_PRINTED]


def _unavailable(name: str, why: str) -> Failure:
    return Failure(
        "sandbox_unavailable",
        f"{name} can't be run confined: {why}",
        hint="this is a fault of the tool or the machine, not of the call; `albert doctor` says what confines here",
    )


def _importable(function: Callable[..., Any]) -> tuple[str, str]:
    """The module and the name under which another process can import the function.

    Raises:
        TypeError: another process can't import it.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if asyncio.iscoroutinefunction(function):
        raise TypeError(f"{name} is async; only an ordinary function can run confined")
    target: Any = sys.modules.get(str(module))
    for part in name.split("."):
        target = getattr(target, part, None)
    if module == "__main__" or (target is not function and getattr(target, "function", None) is not function):
        raise TypeError(
            f"{name or function!r} can't be run confined: it isn't found by its name in a module that can be imported"
        )
    return str(module), name


def _packed(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSON arguments, and the bytes arguments in base64. Raises TypeError."""
    plain = {name: value for name, value in arguments.items() if not isinstance(value, bytes)}
    packed = {name: b64encode(value).decode() for name, value in arguments.items() if isinstance(value, bytes)}
    return [plain, packed]


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
