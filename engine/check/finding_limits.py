"""Limits on the size of a check's answer: the number and length of its findings, and the size of the definition.

A source of 128 KiB can cause thousands of findings, or a definition that no list of tools could show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from albert_tools.engine.check.annotation_schemas import MAX_SCHEMA_NODES
from albert_tools.engine.check.rule import error
from albert_tools.engine.model.definition import ToolDefinition, canonical
from albert_tools.engine.model.json_values import problem_in
from albert_tools.engine.model.messages import brief
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic, Severity, in_order
from albert_tools.grammar.finding_code import FindingCode

#: The most findings of one check. Nobody reads more.
MAX_FINDINGS = 100
#: The most characters of a finding's message or hint. A message can contain a name of the source, which can be very long.
MAX_TEXT = 2_000
#: The most bytes of a definition as JSON. Lists of tools, and each model that may call the tool, get the whole definition.
MAX_DEFINITION_BYTES = 64 * 1024

CODES = (
    FindingCode(
        "check_limit",
        "Checking the source needs too much time or memory, so it was stopped.",
        "A source is a small program that is checked in a moment; whatever it contains, nobody else waits for it.",
    ),
    FindingCode(
        "more-findings",
        "The source has more findings than a report lists.",
        "A report stays readable, and a bad source does not cost more time than a good one.",
    ),
    FindingCode(
        "definition-size",
        "The tool's definition is too large: its description, parameters, defaults and result.",
        "Everyone who may call the tool reads the definition, and each call is checked against it.",
    ),
    FindingCode(
        "definition-text",
        "A text, a default or a choice in the tool's definition can't leave a program.",
        "A definition is JSON, and has 64-bit integers, finite numbers and valid Unicode only.",
        example='''def work(path: str = "\\ud800") -> str:
    """Return the path."""
    return path
''',
        rewrite='''def work(path: str = "\\ufffd") -> str:
    """Return the path."""
    return path
''',
    ),
)


def until_too_many(findings: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The findings of one rule until it has reported more errors than a report lists. The rest is not computed."""
    errors = 0
    for finding in findings:
        yield finding
        errors += finding.severity == Severity.ERROR
        if errors > MAX_FINDINGS:
            return


def capped(findings: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """The first findings, errors before warnings, with shortened texts. If there are more, the last finding says how many.

    The last finding is an error if one of the omitted findings is an error.
    """
    chosen = sorted(findings, key=lambda d: d.severity != Severity.ERROR)
    shown = in_order(_shortened(d) for d in chosen[:MAX_FINDINGS])
    omitted = chosen[MAX_FINDINGS:]
    if not omitted:
        return shown
    more = error(
        "more-findings",
        max(d.span for d in findings),
        f"at least {len(omitted):,} more finding{'s are' if len(omitted) > 1 else ' is'} not listed",
        hint="correct the findings above, then check again",
    )
    return (*shown, replace(more, severity=omitted[0].severity))


def _shortened(finding: Diagnostic) -> Diagnostic:
    message, hint = brief(finding.message, MAX_TEXT), brief(finding.hint or "", MAX_TEXT) or None
    return (
        finding if (message, hint) == (finding.message, finding.hint) else replace(finding, message=message, hint=hint)
    )


def problem_of(definition: ToolDefinition, function: tree.FunctionDef) -> Diagnostic | None:
    """The finding about a definition that is too large, or that can't be written as JSON."""
    parts = [definition.description, definition.parameters_schema(), definition.result]
    problem = problem_in(parts)
    if problem is not None:
        return error(
            "definition-text",
            function.name_span,
            f"the tool's definition contains {problem}, which can't leave a program",
            hint="write whole characters, finite numbers and 64-bit integers; None as a default, and the value in the body",
        )
    size = len(canonical(parts))
    if size <= MAX_DEFINITION_BYTES:
        return None
    return error(
        "definition-size",
        function.name_span,
        f"the definition has {size:,} bytes as JSON; at most {MAX_DEFINITION_BYTES:,} are allowed",
        hint="shorten the docstring and the defaults, and take large values as files",
    )


def too_many_types(annotation: tree.Expr) -> Diagnostic:
    """The finding about the annotation that exceeds the budget of schema nodes."""
    return error(
        "definition-size",
        annotation,
        f"the tool's parameters and result have more than {MAX_SCHEMA_NODES:,} types, fields and choices",
        hint="take a plainer type, for example str or dict[str, Any], and check the value in the program",
    )
