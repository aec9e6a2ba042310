"""Findings of the checker as diagnostics of an editor, and their fixes as code actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol import types

from albert_tools.engine.model.visible_text import one_line
from albert_tools.grammar.diagnostic import Diagnostic, Fix, Severity
from albert_tools.surfaces.lsp.positions import Places

_SEVERITIES = {Severity.ERROR: types.DiagnosticSeverity.Error, Severity.WARNING: types.DiagnosticSeverity.Warning}


def diagnostic(finding: Diagnostic, places: Places) -> types.Diagnostic:
    """A finding with its hint, as the listing of `albert check` has them."""
    help_ = finding.hint or (finding.fix.title if finding.fix is not None else "")
    return types.Diagnostic(
        places.range_of(finding.span),
        one_line(finding.message) + (f"\nhelp: {one_line(help_)}" if help_ else ""),
        _SEVERITIES[finding.severity],
        code=finding.code,
        source="albert",
    )


def code_actions(
    findings: Iterable[Diagnostic],
    places: Places,
    document: types.OptionalVersionedTextDocumentIdentifier,
    at: types.Range,
) -> Iterator[types.CodeAction]:
    """The fixes of the findings that touch a range. They apply to this version of the document only."""
    for finding in findings:
        if finding.fix is None:
            continue
        shown = diagnostic(finding, places)
        if shown.range.start <= at.end and at.start <= shown.range.end:
            edit = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, _edits(finding.fix, places))])
            yield types.CodeAction(
                one_line(finding.fix.title), types.CodeActionKind.QuickFix, [shown], is_preferred=True, edit=edit
            )


def _edits(fix: Fix, places: Places) -> list[types.TextEdit]:
    return [types.TextEdit(places.range_of(span), text) for span, text in fix.edits]
