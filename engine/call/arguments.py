"""What goes into a tool and what comes out of it, held against what the tool says of itself.

Both are copied: what was validated is what is used, whatever becomes of the value it was read from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.argument_errors import refused_arguments
from albert_tools.engine.model.definition import ToolDefinition, spell
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.schema import Violation, kind_of, violations
from albert_tools.engine.sandbox.worker.boundary_values import MAX_ANSWER, Unexportable, export


def problems_of(definition: ToolDefinition, arguments: Any) -> list[Violation]:
    """Everything that is wrong with `arguments`: ``{field, rule, message}``."""
    return _read(definition, arguments)[1]


def _read(definition: ToolDefinition, arguments: Any) -> tuple[dict[str, Any], list[Violation]]:
    """A copy of the arguments, which nobody else can change any more, and everything that is wrong with them."""
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
    return copy, violations(copy, definition.schema)


def promised(definition: ToolDefinition, output: Any) -> Any:
    """A copy of the output, if it is what the tool promises.

    Raises:
        Failure: `invalid_result`, with every violation in `details`; what the tool has done stays done.
    """
    try:
        output = export(output, MAX_ANSWER)
    except Unexportable as refused:
        raise Failure(
            "invalid_result", refused.sentence(f"the output of {definition.name}"), tool=definition.name
        ) from None
    found = violations(output, definition.result) if definition.result else []
    if found:
        raise Failure(
            "invalid_result",
            f"{definition.name} gave what it doesn't promise: " + "; ".join(v["message"] for v in found[:10]),
            hint=f"it promises {spell(definition.result)}: return that, or let the annotation after -> say what comes",
            tool=definition.name,
            details={"violations": found},
        )
    return output


def validated(definition: ToolDefinition, arguments: Any) -> dict[str, Any]:
    """Stage 2: the arguments with defaults filled in.

    Raises:
        Failure: `invalid_arguments` (a `..` in a path is `permission_denied`), with every violation in `details`.
    """
    read, found = _read(definition, arguments)
    if found:
        raise refused_arguments(definition, found)
    # A default is copied as well: the function that gets it may change it.
    return {p.name: read[p.name] if p.name in read else export(p.default, MAX_ANSWER) for p in definition.parameters}
