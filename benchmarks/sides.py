"""The engines that are compared. Each loads a program and runs its function with the same arguments.

If an engine can compile or load a program beforehand, it does. Only evaluation is timed, with one exception: ours and Monty's
evaluation includes the communication with another process, because it can't be measured separately.
"""

from __future__ import annotations

import asyncio
import operator
import re
from collections.abc import Callable
from functools import partial
from typing import Any

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


class Side:
    """One engine."""

    name: str
    #: The file suffix of programs that were translated for this engine.
    suffix = ".tool"
    #: Whether programs for it are `plain`.
    is_plain = True

    def prepare(self, source: str, entry: str) -> Callable[..., Any]:
        """Load a program. Returns its function `entry`. Both may raise an error."""
        raise NotImplementedError

    def rest(self) -> None:
        """Prepare for the next run while no time is measured."""

    def close(self) -> None:
        """Release all resources."""


def plain(source: str) -> str:
    """The program without annotations and docstring, for engines that support neither."""
    source = re.sub(r'    """.*?"""\n', "", source, count=1, flags=re.DOTALL)
    return re.sub(r"def (\w+)\((\w+): int(?: = \d+)?\) -> \w+:", r"def \1(\2):", source)


class CPython(Side):
    """The reference."""

    name = "CPython"
    is_plain = False

    def prepare(self, source: str, entry: str) -> Callable[..., Any]:
        names: dict[str, Any] = {**prelude(lambda *_: None), "Any": Any}
        exec(compile(source, "<tool>", "exec", dont_inherit=True), names)  # noqa: S102 (a program of ours)
        return names[entry]  # type: ignore[no-any-return]


class Albert(Side):
    """A worker of ours that is ready. The time includes the communication in both directions."""

    name = "Albert Tools"
    is_plain = False

    def __init__(self, limits: RunLimits) -> None:
        self._loop = asyncio.new_event_loop()
        self._sandbox = Sandbox(limits)
        self._loop.run_until_complete(self._sandbox.start())

    def prepare(self, source: str, entry: str) -> Callable[..., Any]:
        checked = check_or_raise(source, registry())
        program, names = compile_program(checked), [p.name for p in checked.definition.parameters]

        async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
            raise AssertionError

        def run(*arguments: Any) -> Any:
            given = dict(zip(names, arguments, strict=False))
            return self._loop.run_until_complete(self._sandbox.run(program, given, call=call))

        return run

    def rest(self) -> None:
        # Create the next worker.
        self._loop.run_until_complete(asyncio.sleep(0.01))

    def close(self) -> None:
        self._loop.run_until_complete(self._sandbox.close())
        self._loop.close()


class Restricted(Side):
    """RestrictedPython with its usual guards, in the same process."""

    name = "RestrictedPython"

    def prepare(self, source: str, entry: str) -> Callable[..., Any]:
        from RestrictedPython import compile_restricted, safe_globals
        from RestrictedPython.Eval import default_guarded_getitem, default_guarded_getiter
        from RestrictedPython.Guards import (
            full_write_guard,
            guarded_iter_unpack_sequence,
            guarded_unpack_sequence,
            safer_getattr,
        )

        # RestrictedPython allows no names that begin with an underscore.
        code = compile_restricted(source.replace("_fib", "fib"), "<tool>", "exec")
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
        return names[entry]


class Monty(Side):
    """pydantic-monty: a subprocess, with a session that has loaded the function."""

    name = "Monty"

    def __init__(self) -> None:
        import pydantic_monty

        self._pool = pydantic_monty.Monty()
        self._pool.__enter__()

    def prepare(self, source: str, entry: str) -> Callable[..., Any]:
        session = self._pool.checkout().__enter__()
        session.feed_run(source)
        return lambda *arguments: session.feed_run(f"{entry}(*arguments)", inputs={"arguments": arguments})

    def close(self) -> None:
        self._pool.__exit__(None, None, None)


class Smolagents(Side):
    """smolagents' Python interpreter, in the same process."""

    name = "smolagents"

    def prepare(self, source: str, entry: str) -> Callable[..., Any]:
        from smolagents.local_python_executor import BASE_PYTHON_TOOLS, evaluate_python_code

        state: dict[str, Any] = {}
        own: dict[str, Any] = {}
        evaluate_python_code(source, BASE_PYTHON_TOOLS, own, state=state, authorized_imports=["*"])

        def run(*arguments: Any) -> Any:
            state["arguments"] = arguments
            text = f"{entry}(*arguments)"
            return evaluate_python_code(text, BASE_PYTHON_TOOLS, own, state=state, authorized_imports=["*"])[0]

        return run


class Starlark(Side):
    """starlark-rust, in the same process.

    Its language is not Python. If only a function is missing, the program has a translation.
    """

    name = "Starlark"
    suffix = ".star"

    def prepare(self, source: str, entry: str) -> Callable[..., Any]:
        import starlark

        module = starlark.Module()
        starlark.eval(
            module, starlark.parse("t.star", source, starlark.Dialect.extended()), starlark.Globals.standard()
        )
        return partial(module.freeze().call, entry)


PEERS: tuple[type[Any], ...] = (Restricted, Monty, Smolagents, Starlark)
