"""Fuzzing the front end: parsing, checking and formatting report diagnostics and never fail in another way."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from albert_tools.builtins.catalog import builtin_primitives
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.check.checker import check
from albert_tools.grammar import strategies
from albert_tools.grammar.diagnostic import Severity
from tests.helpers.effort import examples
from tests.helpers.formatting import assert_formats

CATALOG = ToolRegistry(builtin_primitives())
many = settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))


def assert_checks(text: str | bytes) -> None:
    report = check(text, CATALOG)
    assert all(d.message and d.span.line >= 1 for d in report.diagnostics)
    assert (report.checked is None) == any(d.severity == Severity.ERROR for d in report.diagnostics)


@examples(8)
@given(strategies.sources(max_depth=1))
def test_sources_parse_and_format(source: str) -> None:
    assert_formats(source)
    assert_checks(source)


@examples(20)
@given(strategies.texts())
def test_any_text_is_checked(text: str | bytes) -> None:
    assert_checks(text)


@examples(15)
@given(strategies.programs(CATALOG))
def test_programs_pass_the_checker(program: strategies.Program) -> None:
    report = check(program.source, CATALOG)
    assert report.checked is not None, (program.source, report.diagnostics)


@pytest.mark.slow
@many
@given(strategies.sources(max_depth=3))
def test_many_sources(source: str) -> None:
    assert_formats(source)
    assert_checks(source)


@pytest.mark.slow
@many
@given(strategies.texts())
def test_many_texts(text: str | bytes) -> None:
    assert_checks(text)
