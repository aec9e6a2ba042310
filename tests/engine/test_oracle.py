"""Fuzzing the back end: generated programs have the same result in the sandbox and in CPython, for any answers of tools."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import io
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, Optional

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from albert_tools.builtins.catalog import builtin_primitives
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.check.checker import check, check_or_raise
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.pool import Sandbox
from albert_tools.engine.sandbox.worker.prelude import ToolError, prelude
from albert_tools.grammar import strategies
from tests.helpers.effort import examples

CATALOG = ToolRegistry(builtin_primitives())
MAX_BYTES = 16 * 1024 * 1024

Run = Callable[[strategies.Program, int], tuple[Any, str, list[str]]]


def answer(seed: int, name: str, arguments: dict[str, Any]) -> Any:
    """The answer of a tool: a value or a failure. The same arguments have the same answer."""
    asked = json.dumps([seed, name, arguments], sort_keys=True).encode()
    number = int.from_bytes(hashlib.sha256(asked).digest()[:4], "little")
    if number % 4 == 0:
        code = ["not_found", "permission_denied", "timeout", "io_error"][number // 4 % 4]
        raise Failure(code, f"{name} did not work ({number % 7})", retryable=number % 3 == 0)
    return [None, 3, "text", [1, "b"], {"path": "a", "exit_code": 0}, 2.5, True][number % 7]


def by_cpython(program: strategies.Program, seed: int) -> tuple[Any, str, list[str]]:
    """Run a program in CPython. Returns its result, its log and its calls."""
    log = io.StringIO()
    calls: list[str] = []

    def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            given = export(kwargs, MAX_BYTES)
        except Unexportable as error:
            raise ToolError(error.sentence(f"an argument of {name}"), tool=name, code=error.code) from None
        calls.append(json.dumps([name, given], sort_keys=True))
        try:
            return answer(seed, name, given)
        except Failure as failure:
            raise ToolError(failure.message, tool=name, code=failure.code, retryable=failure.retryable) from None

    def print_(*values: Any, **options: Any) -> None:
        print(*values, **options, file=log)

    names = {**prelude(call, print_), "Any": Any, "Literal": Literal, "Optional": Optional}
    exec(compile(program.source, "<tool>", "exec", dont_inherit=True), names)  # noqa: S102 (written by the strategies)
    outcome: Any
    try:
        outcome = export(names["t"](**program.arguments), MAX_BYTES)
    except Unexportable as error:
        outcome = [error.code, error.sentence("the result")]
    except ToolError as error:
        outcome = [error.code, error.message]
        calls.append("failed")
    except Exception as error:
        outcome = ["exception", f"{type(error).__name__}: {error}" if str(error) else type(error).__name__]
        calls.append("failed")
    return outcome, log.getvalue(), sorted(calls)


@pytest.fixture(scope="module")
def by_sandbox() -> Iterator[Run]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)

    sandbox = Sandbox()

    async def run(program: strategies.Program, seed: int) -> tuple[Any, str, list[str]]:
        compiled = compile_program(check_or_raise(program.source, CATALOG))
        log: list[str] = []
        calls: list[str] = []

        async def call(name: str, arguments: dict[str, Any], key: str) -> Any:
            calls.append(json.dumps([name, arguments], sort_keys=True))
            # Answers arrive in any order.
            await asyncio.sleep(len(key) % 3 / 2000)
            return answer(seed, name, arguments)

        outcome: Any
        try:
            outcome = await sandbox.run(compiled, program.arguments, call=call, log=log.append)
        except Failure as failure:
            outcome = [failure.code, failure.message]
            if failure.code not in ("not_json", "result_limit"):
                calls.append("failed")
        return outcome, "".join(log), sorted(calls)

    wait(sandbox.start())
    yield lambda program, seed: wait(run(program, seed))
    wait(sandbox.close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def agree(program: strategies.Program, seed: int, by_sandbox: Run) -> None:
    ours, theirs = by_sandbox(program, seed), by_cpython(program, seed)
    assert repr(ours[0]) == repr(theirs[0]), program.source
    assert ours[1] == theirs[1], program.source
    # Overlapping reads may start before the first error, so the sandbox may make more calls, but no fewer.
    assert set(theirs[2]) <= set(ours[2])
    if "parallel" not in program.source:
        assert ours[2] == theirs[2]


@examples(25)
@given(strategies.programs(CATALOG), st.integers(0, 5))
def test_programs_agree_with_cpython(by_sandbox: Run, program: strategies.Program, seed: int) -> None:
    agree(program, seed, by_sandbox)


#: Statements that the checker refuses, most of which mean something in Python.
SLIPS = [
    "import math\n    out.append(math.floor(n))",
    "held = iter(xs)\n    out.append([next(held, 0), next(held, 0)])",
    "held = map(str, xs)\n    out.append([list(held), list(held)])",
    "held = (x for x in xs)\n    xs.append(1)\n    out.append(list(held))",
    "held = [reversed(xs)]\n    out.append(len(held))",
    "xs.extend(x + 100 for x in xs if x < 0)\n    out.append(xs)",
    "out.append([xs.append(x) for x in xs if len(xs) < 9])",
    "if map(str, xs):\n        out.append(xs)",
    "out.append(len(list(enumerate(map(str, xs)))))",
    "try:\n        out.append(6 // n)\n    except:\n        out.append(0)",
    "try:\n        out.append(tools.current_time())\n    except OSError:\n        out.append(1)",
    "xs.sort\n    out.append(xs)",
    "if s.isdigit:\n        out.append(s)",
    "parallel(lambda: print(n), lambda: print(s))",
    "print(n, flush=True)",
    "out.append(json.dumps(n, cls=None))",
    "out.append(isinstance(n, NameError))",
    "out.append(n.conjugate())",
    "out.append(s.format(n))",
    "out.append('{} {!r:>9} {2[0]}'.format(n, s, [xs]))",
    "try:\n        raise ValueError(s)\n    except (ValueError, NameError) as error:\n        out.append(error.args)",
    "for x in xs:\n        last = x\n    try:\n        out.append(last)\n    except Exception:\n        out.append(0)",
    "try:\n        out.append(total)\n    except Exception:\n        out.append(0)\n    total = 1",
    "if n > 99:\n        return map(str, xs)",
    "out.append(len(map(str, xs)) if n > 99 else 0)",
]


@examples(40)
@given(strategies.programs(CATALOG), st.sampled_from(SLIPS), st.integers(0, 5))
def test_a_fix_never_changes_what_a_program_does(program: strategies.Program, slip: str, seed: int) -> None:
    source = program.source.replace("    out = []\n", f"    out = []\n    {slip}\n")
    before = by_cpython(strategies.Program(source, copy.deepcopy(program.arguments)), seed)
    for diagnostic in check(source, CATALOG).diagnostics:
        if diagnostic.fix is not None:
            fixed = diagnostic.fix.apply(source)
            after = by_cpython(strategies.Program(fixed, copy.deepcopy(program.arguments)), seed)
            assert repr(after) == repr(before), fixed


@pytest.mark.slow
@settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.programs(CATALOG), st.integers(0, 50))
def test_many_programs_agree_with_cpython(by_sandbox: Run, program: strategies.Program, seed: int) -> None:
    agree(program, seed, by_sandbox)
