"""Validate a call's arguments and its output against the tool's definition.

Both are copied first. A later change of the original has no effect on the call. The arguments of a program's call are a copy
already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.argument_errors import refused_arguments
from albert_tools.engine.model.definition import ToolDefinition, spell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.validation import Violation, kind_of, violations
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, Unexportable, export


def argument_violations(definition: ToolDefinition, arguments: Any) -> list[Violation]:
    """All violations in `arguments`, each ``{field, rule, message}``."""
    return _read(definition, arguments)[1]


def _read(definition: ToolDefinition, arguments: Any) -> tuple[dict[str, Any], list[Violation]]:
    """A private copy of the arguments, and all violations in them."""
    if not isinstance(arguments, Mapping):
        message = f"expected an object, the arguments by name; got {kind_of(arguments)}"
        return {}, [{"field": "", "rule": "type", "message": message}]
    try:
        copy = export(dict(arguments), MAX_ANSWER)
    except Unexportable as error:
        if error.code != "not_json":
            return {}, [{"field": "", "rule": error.code, "message": error.sentence("the argument")}]
        place = ""
        for part in reversed(error.path):
            place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
        message = f"{place + ': ' if place else ''}{error.problem} can't be an argument: {error.hint}"
        return {}, [{"field": place, "rule": error.code, "message": message}]
    return copy, _violations(definition, copy)


def _violations(definition: ToolDefinition, arguments: dict[str, Any]) -> list[Violation]:
    found = violations(arguments, definition.schema)
    if not found:
        return found
    # A call is validated again after a question, in a queue and in a batch. An optional argument that wasn't given is null then,
    # whatever its schema says.
    optional = {p.name for p in definition.parameters if not p.required and p.default is None}
    given = {name: value for name, value in arguments.items() if value is not None or name not in optional}
    return violations(given, definition.schema) if len(given) < len(arguments) else found


def checked_output(definition: ToolDefinition, output: Any) -> Any:
    """A copy of the output, if the output matches the tool's result schema.

    Raises:
        Failure: `invalid_result`, with all violations in `details`. The tool's effects are not undone.
    """
    try:
        output = export(output, MAX_ANSWER)
    except Unexportable as refused:
        raise Failure(
            "invalid_result", refused.sentence(f"the output of {definition.name}"), tool=definition.name
        ) from None
    problems = violations(output, definition.result) if definition.result else []
    if problems:
        raise Failure(
            "invalid_result",
            f"the output of {definition.name} doesn't fit its result type: "
            + "; ".join(v["message"] for v in problems[:10]),
            hint=f"return {spell(definition.result)}, or change the annotation after ->",
            tool=definition.name,
            details={"violations": problems},
        )
    return output


def validated_arguments(definition: ToolDefinition, arguments: Any, *, is_copy: bool = False) -> dict[str, Any]:
    """The validated arguments, with defaults for the missing ones. Nobody may change them. `is_copy` says that `arguments` are a
    copy already.

    Raises:
        Failure: `invalid_arguments`, or `permission_denied` for `..` in a path; all violations are in `details`.
    """
    read, problems = (arguments, _violations(definition, arguments)) if is_copy else _read(definition, arguments)
    if problems:
        raise refused_arguments(definition, problems)
    return {p.name: read.get(p.name, p.default) for p in definition.parameters}
