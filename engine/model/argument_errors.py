"""Failures for two kinds of wrong arguments: arguments that break a tool's schema, and valid arguments that can never work.

Most of them are mistakes that the agent can correct. A ``..`` in a path is an attempt to leave the workspace. The workspace has the
same rule, so such a path is reported as a denial.
"""

from __future__ import annotations

from albert_tools.engine.model.definition import ToolDefinition, spell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.validation import Violation


def refused_arguments(definition: ToolDefinition, violations: list[Violation]) -> Failure:
    """The failure for these violations; ``details["violations"]`` lists them.

    The code is `permission_denied` if a violation breaks the rule ``path_traversal``, and `invalid_arguments` otherwise.
    """
    leaving = any(v["rule"] == "path_traversal" for v in violations)
    return Failure(
        "permission_denied" if leaving else "invalid_arguments",
        f"{definition.name}: " + "; ".join(v["message"] for v in violations),
        hint=None if leaving else _usage(definition, violations),
        rule="path_traversal" if leaving else None,
        tool=definition.name,
        details={"violations": violations},
    )


#: Rules that concern the whole call instead of one value.
_OF_THE_CALL = ("unknown", "required", "excludes")


def _usage(definition: ToolDefinition, violations: list[Violation]) -> str | None:
    """How to call the tool, or how to write the single wrong argument. None if the message already contains this."""
    named = {v["field"].partition(".")[0].partition("[")[0] for v in violations}
    parameter = definition.parameter(min(named)) if len(named) == 1 else None
    if parameter is None or any(v["rule"] in _OF_THE_CALL for v in violations):
        return f"call the tool as {definition.signature()}"
    shape = spell(parameter.schema)
    stated = (f"expected {shape}", "expected one of ")
    if any(text in v["message"] for v in violations for text in stated):
        return None
    return f"{definition.name} takes {parameter.name}: {shape}"


def refused_argument(
    field: str, why: str, *, hint: str | None = None, rule: str | None = None, said: str | None = None
) -> Failure:
    """The failure for one argument that matches the schema but can't work. It has one violation in the form of schema violations.

    `why` is the message of the violation. It is also the message of the failure, unless `said` is given. `rule` is the rule of the
    violation; by default it is the name of the field.
    """
    violation = {"field": field, "rule": rule or field, "message": f"{field}: {why}"}
    return Failure("invalid_arguments", said or why, hint=hint, details={"violations": [violation]})
