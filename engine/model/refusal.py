"""How arguments that break a tool's schema are refused, and those that the schema takes and the tool can't.

Mostly that is a slip, which the agent mends. A ``..`` in a path is an attempt to leave, whoever finds it first: it is
denied by the same rule as where the workspace finds it, so that it is counted.
"""

from __future__ import annotations

from albert_tools.engine.model.definition import ToolDefinition
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
        hint=f"the tool is called as {definition.signature()}",
        rule="path_traversal" if leaving else None,
        tool=definition.name,
        details={"violations": found},
    )


def refused_argument(
    field: str, why: str, *, hint: str | None = None, rule: str | None = None, said: str | None = None
) -> Failure:
    """The failure that one argument comes to which the schema takes and the tool can't, with one violation as the schema's have it.

    `why` is the violation's sentence, `said` the failure's where that is another; `rule` is the violation's, else its field's name.
    """
    violation = {"field": field, "rule": rule or field, "message": f"{field}: {why}"}
    return Failure("invalid_arguments", said or why, hint=hint, details={"violations": [violation]})
