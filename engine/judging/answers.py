"""The form of the judging process's answers. `accept` checks their content."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from albert_tools.engine.model.bounds import MAX_TIMEOUT_SECONDS
from albert_tools.engine.model.definition import ToolParameter
from albert_tools.engine.model.example import Example
from albert_tools.engine.model.manifest import Manifest
from albert_tools.grammar.diagnostic import Diagnostic

#: The most lines of a source, and columns of a line, that a place can name.
_MAX_COUNT = 1_000_000
_Count = Annotated[int, msgspec.Meta(ge=0, le=_MAX_COUNT)]
_CODE = re.compile("[a-z][a-z-]{1,40}")


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    pass


class _Tool(_Record):
    name: str
    description: str
    parameters: list[ToolParameter]
    result: dict[str, Any]
    timeout: Annotated[float, msgspec.Meta(gt=0, le=MAX_TIMEOUT_SECONDS)]
    calls: list[str]
    imports: list[str]
    examples: list[Example]
    manifest: Manifest

    def __post_init__(self) -> None:
        if not all(0 <= example.line <= _MAX_COUNT for example in self.examples):
            raise ValueError("an invalid line")


class _Program(_Record):
    lowered: str
    lines: list[_Count]


class _Findings(_Record):
    findings: tuple[Diagnostic, ...]

    def __post_init__(self) -> None:
        for finding in self.findings:
            spans = [finding.span, *(edit.span for edit in (finding.fix.edits if finding.fix is not None else ()))]
            places = [place for span in spans for place in span]
            if not _CODE.fullmatch(finding.code) or not all(0 <= place <= _MAX_COUNT for place in places):
                raise ValueError("an invalid finding")


class Answer(_Findings):
    """The answer to a check. `defect` says why the compiler refused a source that the checker accepted."""

    tool: _Tool | None = None
    program: _Program | None = None
    defect: str | None = None


class FormatAnswer(_Findings):
    """The answer to a request to format a source."""

    text: str | None = None


class Outline(_Record):
    """The names of the public functions of a source, and of the tools that it calls. Empty if it can't be parsed."""

    tools: list[str]
    calls: list[str]


class Unbelievable(Exception):
    """An answer that an honest judging process never gives."""
