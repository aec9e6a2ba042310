"""The failures for arguments that break a tool's schema, or that fit the schema and still cannot work.

Most are slips, which the agent corrects. A ``..`` in a path is an attempt to leave the workspace: it is denied by the same
rule as in the workspace itself, so that it counts as a denial.
"""

from __future__ import annotations

from albert_tools.engine.model.definition import ToolDefinition, spell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.schema import Violation


def refused_arguments(definition: ToolDefinition, found: list[Violation]) -> Failure:
    """The failure for these violations; ``details["violations"]`` lists them.

    `permission_denied` if one of them breaks the rule ``path_traversal``, else `invalid_arguments`.
    """
    leaving = any(v["rule"] == "path_traversal" for v in found)
    return Failure(
        "permission_denied" if leaving else "invalid_arguments",
        f"{definition.name}: " + "; ".join(v["message"] for v in found),
        hint=_usage(definition, found),
        rule="path_traversal" if leaving else None,
        tool=definition.name,
        details={"violations": found},
    )


#: Rules about the call as a whole, not about one value.
_OF_THE_CALL = ("unknown", "required", "excludes")


def _usage(definition: ToolDefinition, found: list[Violation]) -> str | None:
    """How to call the tool, or to give the one argument that is wrong; None if the message says it already."""
    named = {v["field"].partition(".")[0].partition("[")[0] for v in found}
    parameter = definition.parameter(min(named)) if len(named) == 1 else None
    if parameter is None or any(v["rule"] in _OF_THE_CALL for v in found):
        return f"call the tool as {definition.signature()}"
    shape = spell(parameter.schema)
    return None if any(shape in v["message"] for v in found) else f"{definition.name} takes {parameter.name}: {shape}"


def refused_argument(
    field: str, why: str, *, hint: str | None = None, rule: str | None = None, said: str | None = None
) -> Failure:
    """The failure for one argument that fits the schema and still cannot work, with one violation in the schema's form.

    `why` is the violation's message, and the failure's unless `said` gives another. The violation's rule is `rule`, by default
    the name of the field.
    """
    violation = {"field": field, "rule": rule or field, "message": f"{field}: {why}"}
    return Failure("invalid_arguments", said or why, hint=hint, details={"violations": [violation]})
