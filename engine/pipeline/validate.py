"""The stage that validates the request and the arguments. It reports all violations together."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.call.arguments import validated_arguments
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.turns import CLIENT


async def validate(call: Call, run: Run) -> Call:
    """Add the validated arguments, with defaults for missing ones.

    Raises:
        Failure: `invalid_arguments`; `permission_denied` for `..` in a path.
    """
    target = call.target
    if not call.depth and (violations := run.invocation.violations()):
        raise Failure(
            "invalid_arguments",
            "; ".join(v["message"] for v in violations),
            details={"violations": violations, "of": "invocation"},
        )
    try:
        # Arguments can have a million values.
        async with run.service.long_blocks.of(CLIENT.get()):
            arguments = validated_arguments(target.definition, call.given, is_copy=call.depth > 0)
        if target.primitive is not None:
            target.primitive.demand(arguments)
    except Failure as failure:
        if failure.rule == "path_traversal":
            run.service.modes.violation()
        raise
    if not call.depth:
        run.arguments = arguments
    return replace(call, arguments=arguments)
