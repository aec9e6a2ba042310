"""The form of the judging process's answers. `accept` checks their content."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from albert_tools.engine.model.bounds import MAX_TIMEOUT_SECONDS
from albert_tools.engine.model.manifest import Manifest
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Severity, Span

_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    pass


class _Edit(_Record):
    span: dict[str, _Count]
    text: str


class _Fix(_Record):
    title: str
    edits: list[_Edit]


class _Finding(_Record):
    code: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z-]{1,40}$")]
    severity: Literal["error", "warning"]
    message: str
    hint: str | None
    span: dict[str, _Count]
    fix: _Fix | None


class _Parameter(_Record):
    name: str
    schema: dict[str, Any]
    description: str
    required: bool
    default: Any


class _Example(_Record):
    arguments: dict[str, Any]
    files: dict[str, str]
    expect_files: dict[str, str]
    stubs: dict[str, Any]
    line: _Count
    has_result: bool
    result: Any
    raises: str | None


class _Tool(_Record):
    name: str
    description: str
    parameters: list[_Parameter]
    result: dict[str, Any]
    timeout: Annotated[float, msgspec.Meta(gt=0, le=MAX_TIMEOUT_SECONDS)]
    calls: list[str]
    imports: list[str]
    examples: list[_Example]
    manifest: Manifest


class _Program(_Record):
    lowered: str
    lines: list[_Count]


class Answer(_Record):
    """The answer to a check. `defect` says why the compiler refused a source that the checker accepted."""

    findings: list[_Finding]
    tool: _Tool | None = None
    program: _Program | None = None
    defect: str | None = None


class FormatAnswer(_Record):
    """The answer to a request to format a source."""

    findings: list[_Finding]
    text: str | None = None


class Outline(_Record):
    """The names of the public functions of a source, and of the tools that it calls. Empty if it can't be parsed."""

    tools: list[str]
    calls: list[str]


class Unbelievable(Exception):
    """An answer that an honest judging process never gives."""


def diagnostics_of(findings: list[_Finding]) -> tuple[Diagnostic, ...]:
    """The findings of an answer."""
    return tuple(
        Diagnostic(
            f.code,
            f.message,
            _span(f.span),
            f.hint,
            Severity(f.severity),
            None if f.fix is None else Fix(f.fix.title, tuple(Edit(_span(e.span), e.text) for e in f.fix.edits)),
        )
        for f in findings
    )


def _span(fields: dict[str, int]) -> Span:
    try:
        return Span(**fields)
    except TypeError:
        raise Unbelievable("an invalid place") from None
