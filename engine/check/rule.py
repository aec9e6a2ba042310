"""A rule is a function from the facts about a source to findings. The helpers here keep rules short."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Severity, Span
from albert_tools.grammar.tree import Call, Node

Rule = Callable[[Facts], Iterator[Diagnostic]]


def error(code: str, at: Node | Span, message: str, hint: str | None = None, fix: Fix | None = None) -> Diagnostic:
    """A finding that causes the source to be refused."""
    return Diagnostic(code, message, at if isinstance(at, Span) else at.span, hint, Severity.ERROR, fix)


def warning(code: str, at: Node | Span, message: str, hint: str) -> Diagnostic:
    """A finding that is reported and does not refuse the source."""
    return Diagnostic(code, message, at if isinstance(at, Span) else at.span, hint, Severity.WARNING)


def replace(at: Node | Span, text: str, title: str | None = None) -> Fix:
    """The fix that replaces `at` with `text`."""
    span = at if isinstance(at, Span) else at.span
    return Fix(title or f"write {text}", (Edit(span, text),))


def without_parentheses(call: Call) -> Fix:
    """The fix that leaves out the parentheses of a call, with the arguments."""
    func, whole = call.func.span, call.span
    parentheses = Span(func.end_line, func.end_column, whole.end_line, whole.end_column)
    return Fix("leave the parentheses out", (Edit(parentheses, ""),))


def wrap(at: Node, before: str, after: str, title: str) -> Fix:
    """The fix that inserts `before` and `after` around `at`."""
    s = at.span
    start = Span(s.line, s.column, s.line, s.column)
    end = Span(s.end_line, s.end_column, s.end_line, s.end_column)
    return Fix(title, (Edit(start, before), Edit(end, after)))
