"""The engines that are compared. Each runs the same program with the same argument, and returns seconds and a result.

If an engine can compile or load a program beforehand, it does. Only evaluation is timed, with one exception: ours and Monty's
evaluation includes the communication with another process, because it can't be measured separately.
"""

from __future__ import annotations

import asyncio
import operator
import re
import time
from collections.abc import Callable
from typing import Any, Protocol

from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.sandbox.worker.prelude import prelude
from albert_tools.testing import registry

#: Functions that RestrictedPython requires from its user: the augmented assignments.
INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
    "**=": operator.ipow,
    "<<=": operator.ilshift,
    ">>=": operator.irshift,
    "&=": operator.iand,
    "|=": operator.ior,
    "^=": operator.ixor,
}


class Side(Protocol):
    """One engine.

    `prepare` returns a function of the program's argument. It may raise an error if the engine refuses the program.
    """

    name: str
    #: The file suffix of programs that were translated for this engine.
    suffix: str

    def prepare(self, source: str) -> Callable[[int], tuple[float, Any]]:
        """Load a program."""

    def close(self) -> None:
        """Release all resources."""


def plain(source: str) -> str:
    """The program without annotations and docstring, for engines that support neither."""
    source = re.sub(r'    """.*?"""\n', "", source, count=1, flags=re.DOTALL)
    return re.sub(r"def (\w+)\((\w+): int(?: = \d+)?\) -> \w+:", r"def \1(\2):", source)


def _timed(function: Callable[[int], Any]) -> Callable[[int], tuple[float, Any]]:
    """Wraps `function`, so that it also returns the seconds that it took."""

    def run(n: int) -> tuple[float, Any]:
        started = time.perf_counter()
        result = function(n)
        return time.perf_counter() - started, result

    return run


class CPython:
    """The reference."""

    name = "CPython"
    suffix = ".tool"

    def prepare(self, source: str) -> Callable[[int], tuple[float, Any]]:
        names = {**prelude(lambda *_: None), "Any": Any}
        exec(compile(source, "<tool>", "exec", dont_inherit=True), names)  # noqa: S102 (a program of ours)
        return _timed(names["t"])

    def close(self) -> None:
        """Do nothing."""


class Albert:
    """A worker of ours that is ready. The time includes the communication in both directions."""

    name = "Albert Tools"
    suffix = ".tool"

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._sandbox = Sandbox(RunLimits(own_seconds=120, cpu_seconds=120))
        self._loop.run_until_complete(self._sandbox.start())

    def prepare(self, source: str) -> Callable[[int], tuple[float, Any]]:
        program = compile_program(check_or_raise(source, registry()))

        async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
            raise AssertionError

        async def once(n: int) -> tuple[float, Any]:
            started = time.perf_counter()
            result = await self._sandbox.run(program, {"n": n}, call=call)
            return time.perf_counter() - started, result

        def run(n: int) -> tuple[float, Any]:
            found = self._loop.run_until_complete(once(n))
            # Create the next worker while no time is measured.
            self._loop.run_until_complete(asyncio.sleep(0.01))
            return found

        return run

    def close(self) -> None:
        self._loop.run_until_complete(self._sandbox.close())
        self._loop.close()


class Restricted:
    """RestrictedPython with its usual guards, in the same process."""

    name = "RestrictedPython"
    suffix = ".tool"

    def prepare(self, source: str) -> Callable[[int], tuple[float, Any]]:
        from RestrictedPython import compile_restricted, safe_globals
        from RestrictedPython.Eval import default_guarded_getitem, default_guarded_getiter
        from RestrictedPython.Guards import (
            full_write_guard,
            guarded_iter_unpack_sequence,
            guarded_unpack_sequence,
            safer_getattr,
        )

        # RestrictedPython allows no names that begin with an underscore.
        code = compile_restricted(plain(source).replace("_fib", "fib"), "<tool>", "exec")
        more = {"sum": sum, "max": max, "min": min, "list": list, "dict": dict, "sorted": sorted}
        built_in = {**safe_globals["__builtins__"], **more}
        names: dict[str, Any] = {
            "__builtins__": built_in,
            "_getiter_": default_guarded_getiter,
            "_getitem_": default_guarded_getitem,
            "_getattr_": safer_getattr,
            "_write_": full_write_guard,
            "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
            "_unpack_sequence_": guarded_unpack_sequence,
            "_inplacevar_": lambda op, a, b: INPLACE[op](a, b),
        }
        exec(code, names)  # noqa: S102 (a program of ours)
        return _timed(names["t"])

    def close(self) -> None:
        """Do nothing."""


class Monty:
    """pydantic-monty: a subprocess, with a session that has loaded the function."""

    name = "Monty"
    suffix = ".tool"

    def __init__(self) -> None:
        import pydantic_monty

        self._pool = pydantic_monty.Monty()
        self._pool.__enter__()

    def prepare(self, source: str) -> Callable[[int], tuple[float, Any]]:
        session = self._pool.checkout().__enter__()
        session.feed_run(plain(source))

        def run(n: int) -> tuple[float, Any]:
            started = time.perf_counter()
            result = session.feed_run("t(n)", inputs={"n": n})
            return time.perf_counter() - started, result

        return run

    def close(self) -> None:
        self._pool.__exit__(None, None, None)


class Smolagents:
    """smolagents' Python interpreter, in the same process."""

    name = "smolagents"
    suffix = ".tool"

    def prepare(self, source: str) -> Callable[[int], tuple[float, Any]]:
        from smolagents.local_python_executor import BASE_PYTHON_TOOLS, evaluate_python_code

        state: dict[str, Any] = {}
        own: dict[str, Any] = {}
        evaluate_python_code(plain(source), BASE_PYTHON_TOOLS, own, state=state)

        def run(n: int) -> tuple[float, Any]:
            started = time.perf_counter()
            result, _ = evaluate_python_code(f"t({n})", BASE_PYTHON_TOOLS, own, state=state)
            return time.perf_counter() - started, result

        return run

    def close(self) -> None:
        """Do nothing."""


class Starlark:
    """starlark-rust, in the same process.

    Its language is not Python. If only a function is missing, the program has a translation.
    """

    name = "Starlark"
    suffix = ".star"

    def prepare(self, source: str) -> Callable[[int], tuple[float, Any]]:
        import starlark

        text = plain(source)
        names = starlark.Globals.standard()
        starlark.parse("t.star", text + "\n0\n", starlark.Dialect.extended())

        def run(n: int) -> tuple[float, Any]:
            module = starlark.Module()
            tree = starlark.parse("t.star", f"{text}\nt({n})\n", starlark.Dialect.extended())
            started = time.perf_counter()
            result = starlark.eval(module, tree, names)
            return time.perf_counter() - started, result

        run(2)
        return run

    def close(self) -> None:
        """Do nothing."""


PEERS: tuple[type[Any], ...] = (Restricted, Monty, Smolagents, Starlark)
