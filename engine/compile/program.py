"""Compile a checked program: lower it, check it with the second gate, and create the program that is saved and run."""

from __future__ import annotations

from albert_tools.engine.check.checker import Checked
from albert_tools.engine.compile.gate import Refused, judge
from albert_tools.engine.compile.lower import lower
from albert_tools.engine.model.definition import Program, ToolVersion
from albert_tools.engine.model.failure import Failure


def compile_program(checked: Checked) -> Program:
    """The program of a checked source.

    Raises:
        Failure: `internal_error` if the second gate refuses a program that the checker accepted. This is a defect of Albert Tools,
            and nothing is saved.
    """
    lowered = lower(checked)
    try:
        judge(lowered.module)
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
    """The immutable version of a checked source; `created` is ISO 8601 in UTC.

    Raises:
        Failure: See `compile_program`.
    """
    return ToolVersion(
        definition=checked.definition,
        source=checked.source,
        program=compile_program(checked),
        calls=checked.calls,
        created=created,
    ).named()
