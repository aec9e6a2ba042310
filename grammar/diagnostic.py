"""Problems in a source are represented as data.

Every stage that reads a source collects `Diagnostic`s. No stage prints, and no stage stops at the first problem. The `code` is
stable, so programs can compare it. The wording (`message`, `hint`) may change at any time. The command line or the API renders
diagnostics as a listing for a person, JSON for a program, or a short text for a model.

Positions count from 1. Columns are characters, not bytes. The end of a span is exclusive, so
``line[column - 1 : end_column - 1]`` is the text of a one-line span.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct


class Severity(StrEnum):
    """The source is refused after an `error`. A `warning` is only reported."""

    ERROR = "error"
    WARNING = "warning"


class Span(NamedTuple):
    """A range of a source. Lines and character columns count from 1. The end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.line, self.column, other.end_line, other.end_column)


class Edit(NamedTuple):
    """Replace the text at `span` with `text`. An empty span inserts the text."""

    span: Span
    text: str


class Fix(Struct, frozen=True):
    """A change that removes the finding. `title` describes it. The `edits` do not overlap and are in any order."""

    title: str
    edits: tuple[Edit, ...]

    def apply(self, source: str) -> str:
        """The source after all edits."""
        starts = [0]
        for line in source.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        for span, text in sorted(self.edits, reverse=True):
            begin = starts[span.line - 1] + span.column - 1
            end = starts[span.end_line - 1] + span.end_column - 1
            source = source[:begin] + text + source[end:]
        return source


class Diagnostic(Struct, frozen=True):
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
    """The findings in the order of their places, without duplicates. At the same place, errors come before warnings."""
    seen = dict.fromkeys(diagnostics)
    return tuple(sorted(seen, key=lambda d: (d.span, d.severity != Severity.ERROR, d.code, d.message)))
