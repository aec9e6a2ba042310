"""Run the examples of a source before it is saved.

Each ``@example(...)`` runs in a temporary workspace that contains its `files`. The tool is called with the example's `arguments`,
and its result is compared with the expected result. Tools can read and write files in this workspace. Tools with other effects
(network, shell) are not executed. The example's `stubs` give their answers::

    stubs={"http_request": {"status": 200, …}}          # the same answer each time
    stubs={"http_request": {"$each": [{…}, {…}]}}        # one answer (or failure) after the other
    stubs={"http_request": {"$fails": "network_error"}}  # a failure with that code

All examples of a source together have limits on their time and on the bytes that they write. The examples of few sources run at the
same time, so they don't delay other requests.

Tools that the owner's rules deny are also denied in an example, and so are gated primitives.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from albert_tools.engine.authority.rules_source import RulesSource
from albert_tools.engine.call.context import Call, RequestOptions, Run, ServiceContext, Stage
from albert_tools.engine.call.manifest_fence import Fence
from albert_tools.engine.model.definition import Json, ToolVersion
from albert_tools.engine.model.difference import difference, shown
from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.example import Example
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB, RunLimits
from albert_tools.engine.model.nearest_name import did_you_mean
from albert_tools.engine.model.primitive import Primitive
from albert_tools.engine.model.result import Effect, ToolInvocation, ToolResult
from albert_tools.engine.model.turns import CLIENT
from albert_tools.engine.pipeline.pipeline import EXAMPLE_STAGES, Pipeline
from albert_tools.engine.pipeline.scratch import ScratchSpace
from albert_tools.engine.policy.settings import Governance
from albert_tools.engine.workspace.workspace import Workspace

if TYPE_CHECKING:
    from albert_tools.engine.authority.sessions import Session

#: The time limit of one example, in seconds.
MAX_SECONDS = 10.0
#: The time limit of all examples of one source, in seconds, and the most bytes that they write together.
MAX_TOTAL_SECONDS = 30.0
MAX_SCRATCH_BYTES = 64 * MiB
#: The result of one example, in bytes. The report of a failed example contains it.
MAX_RESULT_BYTES = 1 * MiB
#: The values in the report of all failed examples together, in characters of JSON. The messages show where values differ.
MAX_REPORT = 1 * MiB
_NOTHING: Mapping[str, Failure] = {}


class Observed(Struct):
    """What one example has done: the numbers of the planned calls that it made, also of those that stubs answered; its effects."""

    calls: set[int] = field(default_factory=set)
    effects: tuple[Effect, ...] = ()


async def run_examples(
    version: ToolVersion,
    examples: tuple[Example, ...],
    pipeline: Pipeline,
    denied: Mapping[str, Failure] = _NOTHING,
    observed: dict[int, Observed] | None = None,
) -> list[dict[str, Json]]:
    """Run the examples of a version that is not saved yet.

    Args:
        version: The version.
        examples: The examples of the version.
        pipeline: The pipeline that runs the calls.
        denied: The tools that an example must not execute, each with the reason. Only a stub can answer for them.
        observed: Gets what each example has done, by its line.

    Returns:
        One entry ``{line, message, expected, got}`` for each example that failed, without the values after `MAX_REPORT`. The list
        is empty if all examples pass.
    """
    problems: list[dict[str, Json]] = []
    left, space, room = MAX_TOTAL_SECONDS, ScratchSpace(MAX_SCRATCH_BYTES), MAX_REPORT
    async with pipeline.turns_of_examples.of(CLIENT.get()):
        for example in examples:
            began = time.monotonic()
            seen = observed.setdefault(example.line, Observed()) if observed is not None else None
            problem = await _run(version, example, pipeline, denied, min(left, MAX_SECONDS), space, seen)
            left -= time.monotonic() - began
            if problem is not None:
                values: dict[str, Json] = {name: problem.pop(name) for name in ("expected", "got") if name in problem}
                room -= len(json.dumps(values, ensure_ascii=False, default=repr))
                problems.append({"line": example.line, **problem, **(values if room >= 0 else {})})
            if left <= 0:
                message = f"the examples take more than {MAX_TOTAL_SECONDS:g} s together"
                return [*problems, {"line": example.line, "message": message, "hint": "leave some out"}]
    return problems


async def _run(
    version: ToolVersion,
    example: Example,
    pipeline: Pipeline,
    denied: Mapping[str, Failure],
    seconds: float,
    space: ScratchSpace,
    seen: Observed | None,
) -> dict[str, Json] | None:
    try:
        stubs = {name: _denial(name, why) for name, why in denied.items()}
        stubs |= {name: _stub(name, answer) for name, answer in example.stubs.items()}
    except ValueError as error:
        return {"message": str(error)}
    deadline = time.monotonic() + seconds
    stack = ExitStack()
    try:
        made = tempfile.TemporaryDirectory(prefix="albert-example-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(made)).resolve()
        workspace = stack.enter_context(Workspace(folder))
        # A source can name thousands of files, and each is written durably. In the meantime the service answers others.
        for path, content in example.files.items():
            try:
                await asyncio.to_thread(_place, folder, workspace, path, content)
            except Failure as failure:
                return {"message": f"its files can't be written: {failure.message}", "hint": failure.hint}
            if time.monotonic() >= deadline:
                return {"message": f"its files take more than {seconds:.3g} s to write", "hint": "use fewer files"}
        seconds = deadline - time.monotonic()
        limits = RunLimits()
        limits = limits._replace(
            run_seconds=seconds, own_seconds=min(limits.own_seconds, seconds), result_bytes=MAX_RESULT_BYTES
        )
        context = ServiceContext(workspace, RulesSource(Governance(limits=limits), None))
        invocation = ToolInvocation(version.name, example.arguments)
        validated, *rest = (*EXAMPLE_STAGES, space.charged)
        observing = [] if seen is None else [_observing(version, workspace, seen)]
        stages = (validated, *observing, *rest)
        result = await pipeline.invoke(invocation, context, RequestOptions(unsaved=version, stubs=stubs), stages=stages)
        if seen is not None:
            seen.effects = result.effects
        return await asyncio.to_thread(_compare, example, result, workspace)
    finally:
        await asyncio.to_thread(stack.close)


def _observing(version: ToolVersion, workspace: Workspace, seen: Observed) -> Stage:
    """The stage that notes which planned calls of a version are made. Stubs answer after it."""
    numbers = {id(one): i for i, one in enumerate(version.manifest.calls)}

    async def observe(call: Call, run: Run) -> Call:
        if not call.depth:
            return replace(call, fences=(Fence(version, call.arguments, 0, workspace.spell),))
        seen.calls.update(numbers[id(one)] for allowing in call.planned for one in allowing)
        return call

    return observe


def _place(folder: Path, workspace: Workspace, path: str, content: str) -> None:
    parts = path.split("/")[:-1]
    if path.startswith("/") or ".." in parts:
        raise Failure(
            "permission_denied", f"{path!r} is not a path inside the workspace", hint="write it like 'folder/name.txt'"
        )
    # Validate the path before its folders are made.
    workspace.spell(path)
    try:
        folder.joinpath(*parts).mkdir(parents=True, exist_ok=True)
        data = content.encode()
    except (FileExistsError, NotADirectoryError):
        raise Failure("exists", f"{path!r} is in a folder that is a file", hint="use another name") from None
    except OSError as error:
        raise Failure("io_error", f"can't make the folder for {path[:80]!r}: {error.strerror}") from None
    except UnicodeEncodeError:
        raise Failure("encoding_error", f"the text for {path!r} contains half a surrogate pair") from None
    workspace.replace(path, data)


def _compare(example: Example, result: ToolResult, workspace: Workspace) -> dict[str, Json] | None:
    error = result.error
    if example.raises is not None:
        wanted = f"it should fail with {example.raises}"
        if error is None:
            message = f"{wanted}, but it gave {shown(result.output)}"
            return {"message": message, "expected": example.raises, "got": result.output}
        if example.raises not in _kinds(error):
            where = f" in line {error.line}" if error.line else ""
            message = f"{wanted}, but it failed{where} with {error.code}: {error.message}"
            return {"message": message, "expected": example.raises, "got": _error_document(error)}
    elif error is not None and error.rule == "lease.budget.bytes_written":
        message = f"the examples write more than {MAX_SCRATCH_BYTES // MiB} MiB together"
        return {"message": message, "hint": "write less text in the examples"}
    elif error is not None:
        where = f" in line {error.line}" if error.line else ""
        return {"message": f"it failed{where}: {error.message}", "got": _error_document(error), "hint": error.hint}
    elif example.has_result:
        expected = _plain(example.result)
        problem = difference(expected, result.output)
        if problem is not None:
            return {"message": f"the result {problem}", "expected": expected, "got": result.output}
    for path, content in example.expect_files.items():
        try:
            text = workspace.read(path, 64 * 1024 * 1024).decode("utf-8", "replace")
        except Failure as failure:
            return {"message": f"there should be a file {path!r}: {failure.message}", "expected": content, "got": None}
        problem = difference(content, text)
        if problem is not None:
            return {"message": f"the file {path!r} {problem}", "expected": content, "got": text}
    return None


def _kinds(error: Failure) -> set[str]:
    """The names that an example can use to expect this failure: the code and the name of the exception."""
    kinds = {error.code, str(error.details.get("type", "")), str(error.details.get("code", ""))}
    if error.code != "exception":
        kinds.add("ToolError")
    return kinds - {""}


def _error_document(error: Failure) -> Json:
    return {"code": error.code, "message": error.message, "line": error.line}


def _plain(value: Any) -> Any:
    """A constant of the source in the form of a result: tuples become lists."""
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _denial(name: str, why: Failure) -> Callable[[dict[str, Any]], Any]:
    """The stub of a tool that an example must not execute."""

    def deny(arguments: dict[str, Any]) -> Any:
        hint = f'give its answer in the example: stubs={{"{name}": …}}'
        raise Failure("permission_denied", why.message, hint=why.hint or hint, rule=why.rule, tool=name)

    return deny


def _stub(name: str, answer: Any) -> Callable[[dict[str, Any]], Any]:
    if isinstance(answer, dict) and "$fails" in answer:
        code = answer["$fails"]
        if not isinstance(code, str) or code not in CODES:
            near = did_you_mean(str(code), CODES) or "; for example: not_found"
            raise ValueError(f"the stub of {name} fails with {code!r}, which is not a code{near}")

        def fail(arguments: dict[str, Any]) -> Any:
            raise Failure(code, str(answer.get("message", f"{name} failed")), tool=name)

        return fail
    if isinstance(answer, dict) and "$each" in answer:
        if not isinstance(answer["$each"], list | tuple):
            raise ValueError(f'the stub of {name} takes a list of answers: {{"$each": [first, second]}}')
        left = [_stub(name, one) for one in answer["$each"]]

        def each(arguments: dict[str, Any]) -> Any:
            if not left:
                raise Failure(
                    "permission_denied",
                    f"the stub of {name} has no answer left",
                    hint="add one to its `$each` for every call",
                    rule="scratch",
                    tool=name,
                )
            return left.pop(0)(arguments)

        return each
    return lambda arguments: _plain(answer)


def denied_tools(
    context: ServiceContext, primitives: Sequence[Primitive], session: Session | None
) -> dict[str, Failure]:
    """The tools that an example must not execute, each with the reason.

    They are the tools that the rules deny, and the primitives that they ask about or that the lease of the `session` does not
    cover, except those for files of the workspace. Without rules, they are all tools with effects outside the temporary
    workspace.
    """
    rules, authority = context.governance, context.authority
    if isinstance(rules, Failure):
        return {p.name: rules for p in primitives if p.context is None and p.definition.effects}
    denied = {}
    for name in rules.denied:
        denied[name] = Failure("permission_denied", f"{name} is denied by the rules", rule="deny", tool=name)
    if authority is not None:
        for p in primitives:
            decision = authority.policy.permits(p.definition, p.gated, authority.modes.mode)
            asks = decision.verdict == "ask" and not p.paths
            if not p.gated and (decision.verdict == "deny" or asks):
                denied[p.name] = decision.failure(p.name)
    if session is not None:
        sessions = context.record.sessions
        line = sessions.line(session.id)
        for p in (p for p in primitives if not p.paths):
            try:
                sessions.demand(line, p.name)
            except Failure as why:
                # Without the hint of the lease, the report says how an example gets the tool's answer.
                denied.setdefault(p.name, Failure(why.code, why.message, rule=why.rule, tool=p.name))
    return denied
