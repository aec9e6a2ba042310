"""From a checked program to what is saved and run: lowered, and let through by the second gate."""

from __future__ import annotations

from albert_tools.engine.check.checker import Checked
from albert_tools.engine.compile.gate import Refused, judge
from albert_tools.engine.compile.lower import lower
from albert_tools.engine.model.definition import Program, ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.grammar.recursion import with_room


@with_room
def compile_program(checked: Checked) -> Program:
    """The program of a checked source.

    Raises:
        Failure: `internal_error` when the second gate refuses what the checker accepted: a fault of ours, and nothing is saved.
    """
    lowered = lower(checked)
    try:
        judge(lowered.text)
    except Refused as refused:
        raise Failure(
            "internal_error",
            f"the checks disagree about this source, so it is refused: {refused}",
            hint="write it in a simpler way; this is a defect of Albert Tools, please report it",
        ) from refused
    return Program(
        name=checked.definition.name,
        entry=checked.definition.name,
        lowered=lowered.text,
        imports=checked.imports,
        lines=lowered.lines,
    )


def compile_version(checked: Checked, created: str) -> ToolVersion:
    """The immutable version that a checked source becomes; `created` is ISO 8601, UTC.

    Raises:
        Failure: as `compile_program`.
    """
    return ToolVersion(
        definition=checked.definition,
        source=checked.source,
        program=compile_program(checked),
        calls=checked.calls,
        created=created,
    ).named()
