"""Problems are data.

Every stage that reads a source collects `Diagnostic`s and hands them on; none prints, and none raises at the
first problem. What went wrong is the `code`, which is stable and which programs match on; how it is worded
(`message`, `hint`) may improve at any time. A renderer at the edge turns them into a caret listing for a
person, JSON for a program, or a short text for a model.

Positions count from 1, columns in characters (not bytes), and a span's end is exclusive, so that
``line[column - 1 : end_column - 1]`` is the text a one-line span covers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Severity(StrEnum):
    """`error` refuses the source; `warning` is told and does not."""

    ERROR = "error"
    WARNING = "warning"


class Span(NamedTuple):
    """A stretch of a source: 1-based lines and character columns, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.line, self.column, other.end_line, other.end_column)


class Edit(NamedTuple):
    """Replace what `span` covers by `text`; an empty span inserts."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change after which the finding is gone: `title` says it, `edits` do it (disjoint, in any order)."""

    title: str
    edits: tuple[Edit, ...]

    def apply(self, source: str) -> str:
        """The source with all edits done."""
        starts = [0]
        for line in source.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        for span, text in sorted(self.edits, reverse=True):
            begin = starts[span.line - 1] + span.column - 1
            end = starts[span.end_line - 1] + span.end_column - 1
            source = source[:begin] + text + source[end:]
        return source


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a source."""

    code: str
    message: str
    span: Span
    hint: str | None = None
    severity: Severity = Severity.ERROR
    fix: Fix | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: ``{code, severity, message, hint, span, fix}``."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "hint": self.hint,
            "span": self.span._asdict(),
            "fix": None
            if self.fix is None
            else {
                "title": self.fix.title,
                "edits": [{"span": e.span._asdict(), "text": e.text} for e in self.fix.edits],
            },
        }


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings by place, each once, errors before warnings where two share a place."""
    seen = dict.fromkeys(diagnostics)
    return tuple(sorted(seen, key=lambda d: (d.span, d.severity != Severity.ERROR, d.code, d.message)))


class SourceError(Exception):
    """A source was refused; `diagnostics` holds every finding, at least one of them an error."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = in_order(diagnostics)
        errors = [d for d in self.diagnostics if d.severity == Severity.ERROR]
        lines = [f"{d.span.line}:{d.span.column} [{d.code}] {d.message}" for d in errors]
        super().__init__("\n".join(lines) or "the source was refused")
