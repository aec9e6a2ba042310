"""The oracle: CPython runs the sources of `cases/run` in a separate process.

`python -m tests.helpers.oracle` reads a JSON list of programs and writes a list of outcomes. A program is either a source or
its lowered text. A source runs under the prelude. Lowered text runs with simple replacements for the names that a worker
defines. The oracle uses only `export` and the prelude from the sandbox, so that the comparison is meaningful.
"""

from __future__ import annotations
import __future__

import io
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any, Literal, Optional, TypedDict, Union

from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.prelude import ToolError, prelude

Answer = Callable[[str, dict[str, Any]], Any]
MAX_BYTES = 16 * 1024 * 1024


def execute(program: dict[str, Any]) -> dict[str, Any]:
    """Run one program. Returns the outcome as JSON: result, error, code, text, line, printed, calls."""
    log = io.StringIO()
    calls: list[tuple[str, Any]] = []
    outcome: dict[str, Any] = {}

    def answer(name: str, arguments: dict[str, Any]) -> Any:
        try:
            arguments = export(arguments, MAX_BYTES)
        except Unexportable as error:
            raise ToolError(error.sentence("the arguments of " + name), tool=name, code=error.code) from None
        calls.append((name, arguments))
        transcript = program["transcript"]
        if len(calls) > len(transcript):
            raise ToolError("a call that the case does not list", tool=name, code="unlisted")
        _, _, result, failure = transcript[len(calls) - 1]
        if failure is not None:
            raise ToolError(failure[1], tool=name, code=failure[0])
        return result

    def print_(*args: Any, sep: str = " ", end: str = "\n") -> None:
        print(*args, sep=sep, end=end, file=log)

    make = _lowered if program["lowered"] else _plain
    try:
        names = make(program, answer, print_)
        outcome["result"] = export(names[program["entry"]](**program["arguments"]), MAX_BYTES)
    except Unexportable as error:
        outcome.update(error=error.code, text=error.sentence("the result"))
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == "<tool>"]
        line = frames[-1].lineno if frames else None
        outcome.update(error=type(error).__name__, text=str(error), line=line, code=getattr(error, "code", None))
        if not isinstance(error, ToolError):
            outcome["code"] = None
    return {**outcome, "printed": log.getvalue(), "calls": calls}


def _plain(program: dict[str, Any], answer: Answer, print_: Callable[..., None]) -> dict[str, Any]:
    def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return answer(name, dict(zip(program["parameters"].get(name, ()), args, strict=False)) | kwargs)

    names = prelude(call, print_)
    # Define the names that annotations use. Annotations are not evaluated, but the base class of a TypedDict is.
    names |= {"TypedDict": TypedDict, "Any": Any, "Literal": Literal, "Optional": Optional, "Union": Union}
    flags = __future__.annotations.compiler_flag
    exec(compile(program["text"], "<tool>", "exec", flags=flags, dont_inherit=True), names)  # noqa: S102 (a case of ours)
    return names


def _lowered(program: dict[str, Any], answer: Answer, print_: Callable[..., None]) -> dict[str, Any]:
    class Fatal(BaseException):
        pass

    def limit() -> None:
        raise Fatal

    names: dict[str, Any] = {
        "print": print_,
        "ToolError": ToolError,
        "__call": answer,
        "__gather": lambda reads, body, items: [body(*item) for item in items],
        "__rounds": iter,
        "__tick": lambda: None,
        "__Exception": Exception,
        "__dict": dict,
        "__type": lambda value: type(value),
        "__type_name": lambda value: type(value).__name__,
        "__factory": lambda make: make,
        "__parallel": lambda reads, *bodies: tuple([body() for body in bodies]),
        "__Fatal": (MemoryError, RecursionError),
        "__fatal": limit,
        "__str": str,
        "__repr": repr,
        "__ascii": ascii,
        "__format": format,
        "__join": "".join,
    }
    exec(compile(program["text"], "<tool>", "exec", dont_inherit=True), names)  # noqa: S102 (a case of ours)
    return names


def main() -> None:
    """Run one batch."""
    json.dump([execute(p) for p in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
