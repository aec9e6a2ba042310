"""Running one Python function on hostile input, where it can do no harm.

A parser is the likeliest place for a flaw that somebody else's text can use, so what parses pages, archives and the like
doesn't run in the service: it runs in a short-lived process that has imported the function, shut itself in
(`confined_fence`), and only then been given the arguments. It can compute and answer. It is killed when its time is up,
when the call is called off, when the service dies, and after its one answer, and what it answers is believed no more than
the input was.

The process is started anew each time (never forked from this one, which has threads), so that nothing of one call is there
in the next. What takes time is importing: keep such functions in a module of their own that imports little else. A function
can import within itself what lies in Python's folders. System libraries that a module in C wants can't be opened any more
then: import such a module at the top, or name it in `imports`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import weakref
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from albert_tools.engine.model.error_codes import CODES, DENIALS, ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.confined_fence import CONFINEMENTS, strongest

#: Bytes of memory that a call may take on top of what its imports do.
MEMORY = 256 * MiB
#: Bytes of the answer, as JSON.
MAX_ANSWER = 16 * MiB
#: Bytes of a failure's details, as JSON.
MAX_DETAILS = 64 * 1024
#: Seconds for starting and importing; a machine that is busy takes its time.
START_SECONDS = 60.0
#: Calls at once in one event loop; each is a process with its imports. More wait their turn.
MAX_AT_ONCE = 4
#: Bytes kept of what a call prints, from its end; told when it crashes.
MAX_PRINTED = 4096

_LENGTH = struct.Struct("<I")

_BOOT = """
import sys
sys.path.extend(sys.argv[1:])
from albert_tools.engine.sandbox.worker import confined_child
confined_child.main()
"""

_ENVIRONMENT = {
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    # There are no threads behind the fence, so none should be made in front of it.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

_LATE = "with the fence closed it is too late to import that: name the module in `imports`"

#: What would claim more than a confined function can know: it decides nothing, and waits for nobody.
_NEVER = DENIALS | ENDING | {"sandbox_violation", "worker_died", "internal_error", "damaged", "outdated", "depth_limit"}

_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()


@lru_cache(maxsize=1)
def confinement() -> str:
    """What shuts a confined call in on this machine, a key of `CONFINEMENTS`; empty where nothing does, and none is made."""
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
        function: An ordinary function of a module, found there by its name; it may stand under `@primitive`.
        arguments: By name, each JSON or bytes.
        seconds: From when it is ready until it must have answered.
        memory_bytes: What it may take on top of its imports.
        imports: Modules to import beforehand, besides its own.
        result_bytes: The largest answer, as JSON.
        kind: A weaker confinement than the machine offers, for tests.

    Raises:
        Failure: what the function raises as such; `exception` for any other exception of its; `timeout`, `cpu_limit`,
            `memory_limit`, `result_limit`; `not_json`; `sandbox_violation` when it tries what only an attacker does; `worker_died`
            when it crashes; `sandbox_unavailable` when there is no confinement here, or it can't be imported.
        TypeError: the function can't be found by its name, is a coroutine function, or an argument is no JSON.
    """
    module, name = _place(function)
    fence = confinement() if kind is None else kind
    if fence not in CONFINEMENTS:
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
    given = _packed(arguments)
    loop = asyncio.get_running_loop()
    turns = _TURNS.setdefault(loop, asyncio.Semaphore(MAX_AT_ONCE))
    async with turns:
        call = _Call(name, loop, _paths(module))
        try:
            await call.prepared(json.dumps(settings).encode())
            return _believed(name, await call.answered(given, seconds, result_bytes), result_bytes)
        finally:
            await call.end()


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    """The module and the name that another process finds the function by.

    Raises:
        TypeError: there are none.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if asyncio.iscoroutinefunction(function):
        raise TypeError(f"{name} is async; what runs confined is an ordinary function, for it has nothing to wait for")
    found: Any = sys.modules.get(str(module))
    for part in name.split("."):
        found = getattr(found, part, None)
    if module == "__main__" or (found is not function and getattr(found, "function", None) is not function):
        raise TypeError(
            f"{name or function!r} can't be run confined: it isn't found by its name in a module that can be imported"
        )
    return str(module), name


def _packed(arguments: Mapping[str, Any]) -> bytes:
    """The arguments as one JSON text: those that are JSON, and those that are bytes."""
    plain = {name: value for name, value in arguments.items() if not isinstance(value, bytes)}
    packed = {name: b64encode(value).decode() for name, value in arguments.items() if isinstance(value, bytes)}
    return json.dumps([plain, packed], allow_nan=False).encode()


def _paths(module: str) -> list[str]:
    """Where the process looks for modules, Python's own aside: where this one does, and last what holds the function's package.

    Not the current folder, which may be one that tools write to.
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


class _Call:
    """One process, from its start to its end."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, paths: Sequence[str]) -> None:
        self._name = name
        self._loop = loop
        self._printed = bytearray()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._pipe, printing = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _BOOT, *paths],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=theirs.fileno(),
                stdout=printing,
                stderr=printing,
                start_new_session=True,
            )
        except OSError as error:
            self._socket.close()
            os.close(self._pipe)
            raise Failure(
                "sandbox_unavailable", f"no process can be started: {error.strerror}", retryable=True
            ) from None
        finally:
            theirs.close()
            os.close(printing)
        loop.add_reader(self._pipe, self._take)

    async def prepared(self, settings: bytes) -> None:
        """Until everything is imported and the fence is closed.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                message = await self._asked(settings, 64 * 1024)
        except TimeoutError:
            raise self._unavailable(f"it was not ready within {START_SECONDS:g} s") from None
        except Failure as failure:
            raise self._unavailable(failure.message) from None
        if message[0] != "ready":
            raise self._unavailable(str(message[-1])[:2000])

    async def answered(self, arguments: bytes, seconds: float, most: int) -> list[Any]:
        """The one message that follows.

        Raises:
            Failure: `timeout`, `cpu_limit`, `memory_limit`, `sandbox_violation`, `worker_died`.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._asked(arguments, most + 256 * 1024)
        except TimeoutError:
            raise Failure(
                "timeout",
                f"{self._name} had no answer within {seconds:.3g} s, and was stopped",
                hint="give it less at once",
                details={"seconds": round(seconds, 3)},
            ) from None

    async def end(self) -> None:
        """Kill it, whatever it does, and let go of everything."""
        self._loop.remove_reader(self._pipe)
        self._socket.close()
        os.close(self._pipe)
        if self._process.poll() is None:
            # Its whole group: where there is no system call filter it may have made others.
            os.killpg(self._process.pid, signal.SIGKILL)
            # It goes on in its thread when this is called off.
            await asyncio.shield(asyncio.to_thread(self._process.wait))

    async def _asked(self, text: bytes, most: int) -> list[Any]:
        try:
            await self._loop.sock_sendall(self._socket, _LENGTH.pack(len(text)) + text)
            (length,) = _LENGTH.unpack(await self._exactly(_LENGTH.size))
            if length > most:
                raise _violation(self._name, "it answers more than it may")
            message = json.loads(await self._exactly(length))
        except (OSError, EOFError):
            raise await self._death() from None
        except (ValueError, RecursionError):
            raise _violation(self._name, "what it answers is no JSON") from None
        if not isinstance(message, list) or not message:
            raise _violation(self._name, "what it answers is no message")
        return message

    async def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            more = await self._loop.sock_recv(self._socket, min(size - len(received), 1 << 18))
            if not more:
                raise EOFError
            received += more
        return bytes(received)

    async def _death(self) -> Failure:
        """What its end without an answer means."""
        # The socket is closed a moment before the process is over.
        status = await asyncio.to_thread(self._process.wait)
        self._take()
        details = {"printed": self._printed.decode("utf-8", "replace")} if self._printed else {}
        name = self._name
        if status == -signal.SIGSYS:
            return _violation(name, "it tried what a confined function may not", details)
        if status == -signal.SIGXCPU:
            return Failure(
                "cpu_limit", f"{name} used up its processor time", hint="give it less at once", details=details
            )
        if status == -signal.SIGKILL:
            # Not by us: the kernel was short of memory.
            return Failure("memory_limit", f"{name} used up the memory", hint="give it less at once", details=details)
        how = f"ended with {status}" if status >= 0 else f"crashed with {_signal(-status)}"
        return Failure(
            "worker_died", f"{name} {how} on what it was given", hint="give it something else", details=details
        )

    def _unavailable(self, why: str) -> Failure:
        return Failure(
            "sandbox_unavailable",
            f"{self._name} can't be run confined: {why}",
            hint="this is a fault of the tool or the machine, not of the call; `albert doctor` says what confines here",
        )

    def _take(self) -> None:
        try:
            data = os.read(self._pipe, 1 << 16)
        except (BlockingIOError, OSError):
            return
        if not data:
            self._loop.remove_reader(self._pipe)
        self._printed += data
        del self._printed[:-MAX_PRINTED]


def _believed(name: str, message: list[Any], most: int) -> Any:
    """The value that a message carries, in the domain of values, or the failure."""
    match message:
        case ["result", value]:
            try:
                return export(value, most)
            except Unexportable as error:
                raise Failure(error.code, error.sentence(f"the result of {name}")) from None
        case ["failure", dict() as told]:
            raise _told(name, told)
        case ["exception", {"type": str() as kind, "message": str() as text}]:
            raise Failure(
                "exception",
                _plain(f"{kind[:200]}: {text[:2000]}" if text else kind[:200]),
                hint=_LATE if kind in ("ImportError", "ModuleNotFoundError") else None,
                details={"type": _plain(kind[:200])},
            )
        case ["memory"]:
            raise Failure("memory_limit", f"{name} used up its memory", hint="give it less at once")
        case _:
            raise _violation(name, "it sends what confined functions don't send")


def _told(name: str, told: dict[str, Any]) -> Failure:
    """A failure of the function's own, as far as it can be one."""
    code, message, hint, details = (told.get(part) for part in ("code", "message", "hint", "details"))
    known = isinstance(code, str) and code in CODES and code not in _NEVER
    return Failure(
        str(code) if known else "exception",
        _plain(message[:4000]) if isinstance(message, str) else f"{name} failed",
        hint=_plain(hint[:2000]) if isinstance(hint, str) else None,
        retryable=told.get("retryable") is True,
        details=_details(details) if isinstance(details, dict) else {},
    )


def _details(told: dict[str, Any]) -> dict[str, Any]:
    """What it says besides, if that can be told: small values, and nothing that the service itself says there."""
    try:
        found: dict[str, Any] = export({k: v for k, v in told.items() if k != "trail"}, MAX_DETAILS)
    except Unexportable:
        return {}
    return found


def _plain(text: str) -> str:
    """A text without halves of surrogate pairs, which JSON can spell and nothing else can."""
    return text.encode("utf-8", "replace").decode()


def _violation(name: str, why: str, details: dict[str, Any] | None = None) -> Failure:
    return Failure("sandbox_violation", f"{name} was ended: {why}", details=details or {})


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
