"""Run a composite in the sandbox. Each of its calls passes the pipeline as a child of the composite's call."""

from __future__ import annotations

import re
from typing import Any

from albert_tools.engine.call import ledger
from albert_tools.engine.call.budget import seconds_for
from albert_tools.engine.call.context import Call, CallReport, Invoke, Run
from albert_tools.engine.call.errors import notify
from albert_tools.engine.model.definition import Callee, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.pipeline.observers import span_of

#: The number of a call within a program: `3`, or `2.0.1` inside `parallel`.
_KEY = re.compile(r"[0-9]+(\.[0-9]+)*")
_MAX_KEY = 100


async def run_composite(version: ToolVersion, call: Call, run: Run, invoke: Invoke) -> Any:
    """Run the program of a saved version, within the time that its caller has left.

    Raises:
        Failure: The program's failure; `run_limit`, `log_limit`, `sandbox_unavailable`, `sandbox_violation`.
    """
    bounds, definition = call.rules.governance.limits, version.definition
    seconds = seconds_for(call, run)
    limits = bounds._replace(run_seconds=seconds, own_seconds=min(bounds.own_seconds, definition.timeout))
    deadline = run.clock() + seconds - run.questions.waited
    pins = {callee.name: callee for callee in version.calls}

    async def call_tool(name: str, given: dict[str, Any], key: str) -> Any:
        # The worker is not trusted, and ids in the record contain the key.
        if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
            raise Failure("sandbox_violation", f"invalid call number {key[:_MAX_KEY]!r}", tool=version.name)
        run.report.calls += 1
        child = _child(version, call, run, name, given, key, pins.get(name), deadline)
        try:
            return await invoke(child, run)
        finally:
            call.report.printed += child.report.printed

    def printed(text: str) -> None:
        run.report.printed_bytes += len(text.encode())
        if run.report.printed_bytes > bounds.log_bytes:
            raise Failure(
                "log_limit",
                f"the run has printed more than {bounds.log_bytes:,} bytes, with the tools it calls",
                hint="print less",
                tool=version.name,
            )
        if run.options.log is not None:
            ledger.write(run)
        run.report.printed.append(text)
        call.report.printed.append(text)
        notify(run.options.log, version.name, text)

    if not call.depth:
        run.entries.keep_time()
    sandbox = await run.sandbox()
    run.questions.programs.append(call.report)
    try:
        return await sandbox.run(
            version.program, call.arguments, call=call_tool, log=printed, limits=limits, report=call.report
        )
    finally:
        run.questions.programs.remove(call.report)


def _child(
    version: ToolVersion,
    call: Call,
    run: Run,
    name: str,
    given: dict[str, Any],
    key: str,
    pin: Callee | None,
    deadline: float,
) -> Call:
    """A call of the program, to the version that the program was checked against."""
    step = f"{call.step}/{key}" if call.step else key
    if pin is not None:
        notify(run.options.watch, name)
    return Call(
        tool=name,
        version=None if pin is None or pin.kind == "primitive" else pin.version,
        given=given,
        id=f"{run.id}:{step}",
        deadline=deadline,
        report=CallReport(),
        span=span_of(run, call.span),
        parent=call.id,
        pinned=pin is not None,
        step=step,
        depth=call.depth + 1,
        callers=(*call.callers, version.name),
        trail=(*call.trail, version.version),
        fences=call.fences,
        # Until the rules judge the call, the limits of its caller apply.
        rules=call.rules,
    )
