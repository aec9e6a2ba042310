"""`format` of a literal: the checker and the second gate accept only fields that name arguments, and Python reads them alike."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from string import Formatter

from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.check.checker import check
from albert_tools.engine.compile.gate import Refused, judge
from albert_tools.grammar.python_parser import parse_python
from tests.helpers.effort import examples
from tests.helpers.harness import catalog

PIECES = [
    "a",
    "{{",
    "}}",
    "{",
    "}",
    "{}",
    "{0}",
    "{1}",
    "{n}",
    "{m}",
    "{0.real}",
    "{n[0]}",
    "{:>9}",
    "{!r}",
    "{!s:.1f}",
]
SPECIFIED = ["{:{}}", "{0:{1}}", "{n:{0.real}}", "{:{:{}}}", "{n:>{n}}", "{:05d}", "{:%H}"]
ODD = ["{ }", "{n!}", "{0!q}", "{٣}", "{-1}"]


@examples(300)
@given(
    st.lists(st.sampled_from(PIECES + SPECIFIED + ODD), max_size=5).map("".join),
    st.sampled_from(["a", "a, 3", "a, n=3", "n=a", "*[a, 3]", "**{'n': a}", "a, 3, n=a"]),
)
def test_an_accepted_template_formats_its_arguments_and_reads_nothing_else(template: str, arguments: str) -> None:
    call = f"{template!r}.format({arguments})"
    source = f'def t(a: Any) -> Any:\n    """T."""\n    return {call}\n'
    report = check(source, catalog())
    try:
        judge(parse_python(f"def t(a):\n    return {call}\n"))
        passes_gate = True
    except Refused:
        passes_gate = False
    codes = {d.code for d in report.diagnostics}
    if report.checked is not None:
        assert passes_gate
        # A format may not fit its value. What is unpacked is not known.
        unknown = (IndexError, KeyError) if "*" in arguments else ()
        with suppress(ValueError, TypeError, *unknown):
            _formatted(call)
    elif "arguments" in codes:
        try:
            _formatted(call)
        except (IndexError, KeyError, ValueError, TypeError):
            pass
        else:
            raise AssertionError(call)
    if passes_gate:
        with suppress(ValueError):
            assert not any("." in field or "[" in field for field in _fields(template))


def _fields(template: str) -> Iterator[str]:
    """The fields of a template, also those in the specifications of others. What is in doubled braces is no field."""
    for _, field, specification, _ in Formatter().parse(template):
        if field is not None:
            yield field
            yield from _fields(specification or "")


def _formatted(call: str) -> str:
    return str(eval(compile(ast.parse(call, mode="eval"), "<call>", "eval"), {"a": 7}))  # noqa: S307 (made above)
