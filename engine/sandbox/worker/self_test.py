"""Tests, on this machine, that every limit and the fence work.

Each trial runs a hostile program in a real worker, and must end with the expected code. The checker is bypassed, because the
lowered text is written here. `albert doctor` shows the trials, and the tests run them too. All trials run at once. The slowest
takes a second, because the kernel counts processor time in whole seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from msgspec import Struct

from albert_tools.engine.model.definition import Program
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB, RunLimits
from albert_tools.engine.sandbox.worker.pool import Sandbox


class Trial(Struct, frozen=True):
    """One trial: whether it ended as expected, a sentence about the result, and its duration in seconds."""

    name: str
    ok: bool
    message: str
    seconds: float


class _Attempt(Struct, frozen=True):
    name: str
    body: str
    expected: tuple[str, ...]
    limits: dict[str, Any]


#: Code that gets access to all of Python. The fence must make this access useless.
_REACH = (
    "g = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__.__globals__\n"
)

LIMITS = (
    _Attempt("own time", "for i in range(10**12):\n    pass", ("time_limit",), {"own_seconds": 0.1}),
    _Attempt("one call into C code", "x = 3 ** 10**9", ("time_limit", "memory_limit"), {"own_seconds": 0.1}),
    _Attempt("whole run", "__call('wait', {})", ("run_limit",), {"run_seconds": 0.1}),
    _Attempt("processor time", "for i in range(10**12):\n    pass", ("cpu_limit",), {"cpu_seconds": 1}),
    _Attempt(
        "memory, little by little",
        "x = []\nfor i in range(10**9):\n    x.append(bytes(10_000))",
        ("memory_limit",),
        {"memory_bytes": 64 * MiB},
    ),
    _Attempt("memory, at once", "x = 'a' * 10**11", ("memory_limit",), {}),
    _Attempt(
        "memory, in a handler",
        "try:\n    x = 'a' * 10**11\nexcept __Fatal:\n    __fatal()\nexcept Exception:\n    pass",
        ("memory_limit",),
        {},
    ),
    _Attempt("recursion", "def f(x):\n    return f([x])\nf(1)", ("recursion_limit",), {}),
    _Attempt("tool calls", "for i in range(100):\n    __call('answer', {})", ("call_limit",), {"calls": 10}),
    _Attempt("size of the result", "return 'a' * 1_000_000", ("result_limit",), {"result_bytes": 100_000}),
    _Attempt("nodes of the result", "x = [0] * 600_000\nreturn [x, x]", ("result_limit",), {}),
    _Attempt("size of the log", "for i in range(100_000):\n    print(i)", ("log_limit",), {"log_bytes": 10_000}),
)

FENCE = (
    _Attempt("opening a file", _REACH + "return str(g['open']('/etc/passwd', 0))", ("sandbox_violation",), {}),
    _Attempt("listing a folder", _REACH + "return g['listdir']('/')", ("sandbox_violation",), {}),
    _Attempt("starting a process", _REACH + "return g['fork']()", ("sandbox_violation",), {}),
    _Attempt("running a command", _REACH + "return g['system']('true')", ("sandbox_violation",), {}),
    _Attempt("killing its parent", _REACH + "return g['kill'](g['getppid'](), 9)", ("sandbox_violation",), {}),
    _Attempt(
        "opening a connection",
        _REACH + "s = g['sys'].modules['socket']\nreturn str(s.socket())",
        ("sandbox_violation",),
        {},
    ),
)

#: The expected end of a program under Landlock or resource limits, where no filter kills its worker. Neither prevents root from
#: starting processes. So for root those trials fail, and the weaker fence is reported.
_REFUSED = ("exception",)


async def trials(sandbox: Sandbox) -> AsyncIterator[Trial]:
    """Run all trials at once in `sandbox`, which must have been started. Yields them in order."""
    weaker = () if sandbox.confinement == "seccomp" else _REFUSED
    attempts = [(each, each.expected) for each in LIMITS] + [(each, each.expected + weaker) for each in FENCE]
    running = [asyncio.create_task(_try(sandbox, attempt, expected)) for attempt, expected in attempts]
    try:
        for task in running:
            yield await task
    finally:
        for task in running:
            task.cancel()


async def _try(sandbox: Sandbox, attempt: _Attempt, expected: tuple[str, ...]) -> Trial:
    body = "\n".join("    " + line for line in attempt.body.split("\n"))
    program = Program("trial", "trial", f"def trial():\n{body}\n")
    limits = RunLimits(own_seconds=10.0, run_seconds=20.0)._replace(**attempt.limits)

    async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
        if name == "wait":
            await asyncio.sleep(3600)
        return 1

    started = time.monotonic()
    try:
        result = await sandbox.run(program, {}, call=call, limits=limits)
        got, message = "", f"it got through, with {str(result)[:80]!r}"
    except Failure as failure:
        got, message = failure.code, f"{failure.code}: {failure.message}"
    return Trial(attempt.name, got in expected, message, time.monotonic() - started)
