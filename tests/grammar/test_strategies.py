"""Fuzzing the front end: nothing makes parsing, checking or formatting fail by anything but diagnostics."""

from __future__ import annotations

import ast

import pytest
from hypothesis import HealthCheck, given, settings

from albert_tools.builtins.catalog import builtin_primitives
from albert_tools.engine.call.tool_registry import ToolRegistry
from albert_tools.engine.check.checker import check
from albert_tools.grammar import strategies
from albert_tools.grammar.diagnostic import Severity
from albert_tools.grammar.parse import parse
from albert_tools.grammar.unparse import unparse
from tests.helpers.effort import examples

CATALOG = ToolRegistry(builtin_primitives())
many = settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))


def survives(text: str | bytes) -> None:
    report = check(text, CATALOG)
    assert all(d.message and d.span.line >= 1 for d in report.diagnostics)
    assert (report.checked is None) == any(d.severity == Severity.ERROR for d in report.diagnostics)


def holds(source: str) -> None:
    parsed = parse(source)
    assert parsed.module is not None, parsed.diagnostics
    text = unparse(parsed.module)
    again = parse(text).module
    assert again == parsed.module, text
    assert sorted(c.text for c in again.comments) == sorted(c.text for c in parsed.module.comments)
    assert unparse(again) == text, text
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    survives(source)


@examples(8)
@given(strategies.sources(max_depth=1))
def test_sources_parse_and_format(source: str) -> None:
    holds(source)


@examples(20)
@given(strategies.texts())
def test_any_text_gets_diagnostics(text: str | bytes) -> None:
    survives(text)


@examples(15)
@given(strategies.programs(CATALOG))
def test_programs_pass_the_checker(program: strategies.Program) -> None:
    report = check(program.source, CATALOG)
    assert report.checked is not None, (program.source, report.diagnostics)


@pytest.mark.slow
@many
@given(strategies.sources(max_depth=3))
def test_many_sources(source: str) -> None:
    holds(source)


@pytest.mark.slow
@many
@given(strategies.texts())
def test_many_texts(text: str | bytes) -> None:
    survives(text)
