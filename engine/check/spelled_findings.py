"""Findings name things as the source spells them, and not as the resolved tree does (`scopes`)."""

from __future__ import annotations

from msgspec.structs import replace

from albert_tools.engine.check.scopes import MARK, as_spelled
from albert_tools.grammar.diagnostic import Diagnostic, Fix


def with_spelled_names(d: Diagnostic) -> Diagnostic:
    """A finding with the names of the source."""
    fix = d.fix
    if not any(MARK in text for text in (d.message, d.hint or "", *(e.text for e in (fix.edits if fix else ())))):
        return d
    if fix is not None:
        fix = Fix(as_spelled(fix.title), tuple(e._replace(text=as_spelled(e.text)) for e in fix.edits))
    return replace(d, message=as_spelled(d.message), hint=d.hint and as_spelled(d.hint), fix=fix)
