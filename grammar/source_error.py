"""The error that refuses a source."""

from __future__ import annotations

from collections.abc import Iterable

from albert_tools.grammar.diagnostic import Diagnostic, Severity, in_order


class SourceError(Exception):
    """A source was refused.

    `str(error)` lists the errors, each with its place, its code and its hint, one below the other. `render` also shows the lines of
    the source, and the warnings.

    Attributes:
        diagnostics: All findings in the order of their places, errors and warnings; at least one is an error.
        source: The text that was checked. If a structured form was checked, this is the source that was written from it.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], source: str | bytes = "") -> None:
        self.diagnostics = in_order(diagnostics)
        self.source = source if isinstance(source, str) else source.decode("utf-8", "replace")
        lines = [_spelled(d) for d in self.diagnostics if d.severity == Severity.ERROR]
        super().__init__("\n".join(lines) or "the source was refused")

    def render(self, filename: str = "source") -> str:
        """All findings as `albert check` prints them: each with its line, its hint and what its fix changes.

        Args:
            filename: The name to show for the source.
        """
        from albert_tools.grammar.listing import render

        return render(self.diagnostics, self.source, filename)


def _spelled(d: Diagnostic) -> str:
    advice = d.hint or (d.fix.title if d.fix is not None else None)
    return f"{d.span.line}:{d.span.column} [{d.code}] {d.message}" + (f"\n  help: {advice}" if advice else "")
