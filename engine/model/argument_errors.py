"""How arguments that break a tool's schema are refused, and those that the schema takes and the tool can't.

Mostly that is a slip, which the agent mends. A ``..`` in a path is an attempt to leave, whoever finds it first: it is
denied by the same rule as where the workspace finds it, so that it is counted.
"""

from __future__ import annotations

from albert_tools.engine.model.definition import ToolDefinition, spell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.schema import Violation


def refused_arguments(definition: ToolDefinition, found: list[Violation]) -> Failure:
    """The failure for these violations, all of them in ``details["violations"]``.

    `permission_denied` with rule ``path_traversal`` where that is among them, else `invalid_arguments`.
    """
    leaving = any(v["rule"] == "path_traversal" for v in found)
    return Failure(
        "permission_denied" if leaving else "invalid_arguments",
        f"{definition.name}: " + "; ".join(v["message"] for v in found),
        hint=_called(definition, found),
        rule="path_traversal" if leaving else None,
        tool=definition.name,
        details={"violations": found},
    )


#: Rules whose breach is about the call as a whole, not about one value.
_OF_THE_CALL = ("unknown", "required", "excludes")


def _called(definition: ToolDefinition, found: list[Violation]) -> str | None:
    """How the tool is called, as far as that was got wrong; None where the message has it."""
    named = {v["field"].partition(".")[0].partition("[")[0] for v in found}
    parameter = definition.parameter(min(named)) if len(named) == 1 else None
    if parameter is None or any(v["rule"] in _OF_THE_CALL for v in found):
        return f"the tool is called as {definition.signature()}"
    shape = spell(parameter.schema)
    return None if any(shape in v["message"] for v in found) else f"{definition.name} takes {parameter.name}: {shape}"


def refused_argument(
    field: str, why: str, *, hint: str | None = None, rule: str | None = None, said: str | None = None
) -> Failure:
    """The failure that one argument comes to which the schema takes and the tool can't, with one violation as the schema's have it.

    `why` is the violation's sentence, `said` the failure's where that is another; `rule` is the violation's, else its field's name.
    """
    violation = {"field": field, "rule": rule or field, "message": f"{field}: {why}"}
    return Failure("invalid_arguments", said or why, hint=hint, details={"violations": [violation]})
