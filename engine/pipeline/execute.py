"""Execute a call that has begun: a primitive in the guarded workspace, a composite in the sandbox."""

from __future__ import annotations

from typing import Any

from albert_tools.engine.call.context import Call, Invoke, Run
from albert_tools.engine.call.outputs import accepted_output
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import describe_fault
from albert_tools.engine.pipeline.invoke_primitive import run_primitive
from albert_tools.engine.pipeline.run_composite import run_composite


async def execute(call: Call, run: Run, invoke: Invoke) -> Any:
    """The output of a call. `invoke` makes the calls of a composite.

    Raises:
        Failure: The call failed. A fault of the tool becomes `internal_error`, an output that is not as declared `invalid_result`.
    """
    target = call.target
    try:
        if target.primitive is not None:
            output = await run_primitive(target.primitive, call, run)
        else:
            assert target.version is not None
            output = await run_composite(target.version, call, run, invoke)
        return accepted_output(call, run, output)
    except Failure:
        raise
    except Exception as fault:
        raise Failure(
            "internal_error",
            f"{call.name} failed because of a fault in its code: {describe_fault(fault)}",
            hint="the fault is in the tool, not in the call; report it to the tool's author",
            tool=call.name,
        ) from fault
