"""Accept the output of a call: it matches the schema of the result, and what the primitive declares about it.

The manifests of saved tools rely on these declarations.
"""

from __future__ import annotations

from typing import Any

from albert_tools.engine.call.arguments import checked_output
from albert_tools.engine.call.context import Call, Run
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.output_facts import contradiction


def accepted_output(call: Call, run: Run, output: Any) -> Any:
    """A copy of the output.

    Raises:
        Failure: `invalid_result`. The tool's effects are not undone.
    """
    definition = call.target.definition
    output = checked_output(definition, output)
    if not definition.declared.outputs:
        return output
    workspace = call.rules.authority.reaching(run.workspace)
    problem = contradiction(definition, call.arguments, output, workspace.spell)
    if problem is not None:
        raise Failure(
            "invalid_result",
            f"the output of {call.name} contradicts its declaration: {problem}",
            hint="the fault is in the tool, not in the call; report it to the tool's author",
            tool=call.name,
        )
    return output
