"""Fuzzing the front end: parsing, checking and formatting report diagnostics and never fail in another way."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from albert_tools.engine.check.checker import check
from albert_tools.engine.model.definition import ToolDefinition, ToolParameter
from albert_tools.grammar.diagnostic import Severity
from albert_tools.testing import registry
from tests.generators import strategies
from tests.helpers.effort import examples
from tests.helpers.formatting import assert_formats
from tests.helpers.harness import FixedCatalog

CATALOG = registry()
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


@examples(15)
@given(strategies.mutants(CATALOG))
def test_a_mistake_has_findings_with_a_solution(program: strategies.Program) -> None:
    assert_checks(program.source)
    for d in check(program.source, CATALOG).diagnostics:
        assert d.hint or d.fix or "did you mean" in d.message, (d, program.source)


def odd_tools() -> list[ToolDefinition]:
    """Tools that programs can call, and tools that they can't."""
    plain = CATALOG.get("read_file")
    assert plain is not None
    required = ToolParameter("class", {"type": "string"})
    optional = ToolParameter("class", {"type": "string"}, required=False)
    names = ["t", "import", "crm.find", "crm.class", "_hidden"]
    return [
        *(replace(plain, name=name) for name in names),
        replace(plain, name="deep", depth=8),
        replace(plain, name="needs_a_keyword", parameters=(required,)),
        replace(plain, name="takes_a_keyword", parameters=(optional,)),
    ]


@pytest.mark.parametrize("tools", [odd_tools(), odd_tools()[:2], []], ids=["some", "none to call", "none"])
def test_programs_call_only_what_can_be_called(tools: list[ToolDefinition]) -> None:
    catalog = FixedCatalog(tools)

    @examples(5)
    @given(strategies.programs(catalog))
    def accepted(program: strategies.Program) -> None:
        assert check(program.source, catalog).checked is not None, program.source

    accepted()


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
