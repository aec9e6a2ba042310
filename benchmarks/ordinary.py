"""Short programs of ordinary Python, which were not written for any of the engines: who accepts them, and with which results.

A program is module-level code whose last function is called. For ours it becomes a tool, with as few changes as possible:
parameters without annotation get `Any`, a missing docstring is added, and other public functions get a leading underscore. A result
is the same if it is CPython's after a conversion to JSON.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from albert_tools.engine.model.limits import RunLimits
from albert_tools.grammar.source_error import SourceError
from benchmarks.sides import Albert, CPython, Monty, Side, Smolagents

FOLDER = Path(__file__).parent / "ordinary_programs"


class Program(NamedTuple):
    """A program. `calls` has the arguments of each call of `entry`."""

    subject: str
    source: str
    entry: str
    calls: list[list[Any]]


def programs() -> Iterator[Program]:
    """All programs. In a file they are separated by ``---``, and each has its calls in a comment."""
    for path in sorted(FOLDER.glob("*.txt")):
        for text in path.read_text(encoding="utf-8").split("\n---\n"):
            lines = text.strip().split("\n")
            calls = next(line for line in lines if line.startswith("# calls:"))
            source = "\n".join(line for line in lines if line is not calls) + "\n"
            functions = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
            yield Program(
                path.stem, source, functions[-1].name, ast.literal_eval(calls.removeprefix("# calls:").strip())
            )


def as_tool(program: Program) -> str:
    """The source of a program as a tool."""
    module = ast.parse(program.source)
    functions = [n for n in module.body if isinstance(n, ast.FunctionDef)]
    helpers = {f.name: f"_{f.name}" for f in functions[:-1] if not f.name.startswith("_")}
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            node.id = helpers.get(node.id, node.id)
    for function in functions[:-1]:
        function.name = helpers.get(function.name, function.name)
    tool = functions[-1]
    for parameter in (*tool.args.args, *tool.args.kwonlyargs):
        parameter.annotation = parameter.annotation or ast.Name("Any")
    if ast.get_docstring(tool) is None:
        tool.body.insert(0, ast.Expr(ast.Constant("Compute.")))
    return ast.unparse(ast.fix_missing_locations(module))


def outcome(side: Side, program: Program, expected: list[str]) -> str:
    """``same``, ``wrong``, ``refused`` or ``failed``; for ours, refusals have their codes."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            run = side.prepare(as_tool(program) if isinstance(side, Albert) else program.source, program.entry)
    except SourceError as error:
        return f"refused: {' '.join(sorted({d.code for d in error.diagnostics if d.severity == 'error'}))}"
    except Exception as error:
        return f"refused: {type(error).__name__}"
    for arguments, wanted in zip(program.calls, expected, strict=True):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found = run(*copy.deepcopy(arguments))
        except Exception as error:
            return f"failed: {getattr(error, 'code', type(error).__name__)}"
        if as_json(found) != wanted:
            return "wrong"
    return "same"


def as_json(value: Any) -> str:
    """A result as JSON, for a comparison. What is no JSON is its `repr`."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)


def expected_results(program: Program) -> list[str]:
    """What CPython returns."""
    with contextlib.redirect_stdout(io.StringIO()):
        run = CPython().prepare(program.source, program.entry)
        return [as_json(run(*copy.deepcopy(arguments))) for arguments in program.calls]


def table() -> list[str]:
    """The lines of the table, and our refusals by code."""
    ours = Albert(RunLimits())
    sides: list[Side] = [ours]
    missing = []
    for peer in (Monty, Smolagents):
        try:
            __import__({"Monty": "pydantic_monty"}.get(peer.name, peer.name))
        except ImportError:
            missing.append(peer.name)
        else:
            sides.append(peer())
    every = [(program, expected_results(program)) for program in programs()]
    lines = [
        f"| {len(every)} programs | accepted | same | wrong | refused | failed |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    details: list[str] = []
    for side in sides:
        found = [(program, outcome(side, program, expected)) for program, expected in every]
        kinds = Counter(said.partition(":")[0] for _, said in found)
        accepted = (len(every) - kinds["refused"]) / len(every)
        counts = " | ".join(str(kinds[kind]) for kind in ("same", "wrong", "refused", "failed"))
        lines.append(f"| {side.name} | {accepted:.0%} | {counts} |")
        details += [f"- {side.name}, wrong: {program.entry}" for program, said in found if said == "wrong"]
        if side is ours:
            reasons = Counter(said for _, said in found if said not in ("same", "wrong"))
            details += [f"- {count} {reason}" for reason, count in reasons.most_common()]
    ours.close()
    if missing:
        details.append(f"- Not installed: {', '.join(missing)} (`pip install -e '.[benchmarks]'`).")
    return [*lines, "", *details]
