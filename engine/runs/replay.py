"""Answers the calls of a resumed or replayed run from its journal. It wraps the stages; no stage knows about it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from albert_tools.engine.call.context import Call, Invoke, Run
from albert_tools.engine.call.errors import notify
from albert_tools.engine.call.journal import Step
from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.failure import Failure


async def from_journal(call: Call, run: Run, govern: Invoke) -> Any:
    """The recorded result of a step that has ended in the journal; otherwise, the result of `govern`.

    Raises:
        Failure: The recorded failure of the step; `diverged` if the journal has another call in this step, or if a replay makes a
            call that is not in the journal.
    """
    if not call.is_step:
        return await govern(call, run)
    # The arguments of the request itself come from the journal's header, so they can't differ.
    given = call.given if call.depth else None
    definition = call.target.definition
    step = run.journal.find(
        call.place, definition.name, definition.version, given, any_version=run.options.resumed.new_version
    )
    if step is not None and step.version != definition.version and call.target.version is not None:
        # The journal has the calls of another program. This one runs, too, and its calls are looked up.
        return await govern(call, run)
    if step is not None and step.ended:
        return _replayed(step, call, run)
    if run.options.resumed.is_replay:
        raise _not_in_journal(call)
    return await govern(call if step is None else replace(call, interrupted=step), run)


def _replayed(step: Step, call: Call, run: Run) -> Json:
    """The result of a step that has ended. Its effects and prints are added to the run. Nothing is charged.

    Raises:
        Failure: The recorded failure of the step.
    """
    if step.log:
        run.report.printed_bytes += len(step.log.encode())
        run.report.printed.append(step.log)
        call.report.printed.append(step.log)
        notify(run.options.log, call.name, step.log)
    run.report.effects.extend(step.effects)
    if call.target.version is not None:
        for inner in run.journal.within(call.step):
            run.report.effects.extend(inner.effects)
            run.report.calls += 1
    if step.failure is not None:
        raise step.failure.copy()
    return step.value


def _not_in_journal(call: Call) -> Failure:
    """The failure that ends a replay when the program makes a call that is not in the journal."""
    return Failure(
        "diverged",
        f"the journal has no step {call.place}: the program calls {call.name} there",
        hint="up to this step, the program makes the recorded calls",
        tool=call.name,
        details={"step": call.place, "program": {"tool": call.name, "arguments": call.given}},
    )
