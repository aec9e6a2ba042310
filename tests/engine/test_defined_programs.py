"""Generated programs can be defined, stored, loaded again, shown and reviewed, whatever their constants are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.generators import strategies
from tests.helpers.defined_programs import DefinedPrograms, defined_programs
from tests.helpers.effort import examples
from tests.helpers.generated_tools import generated_tools, some_program

CATALOG = generated_tools(0)


@pytest.fixture(scope="module")
def defined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DefinedPrograms]:
    with defined_programs(tmp_path_factory.mktemp("defined").resolve(), CATALOG) as made:
        yield made


@st.composite
def sources(draw: strategies.Draw) -> str:
    """Programs that call primitives and generated tools."""
    return some_program(strategies.Drawn(draw), CATALOG).source


@examples(25)
@given(sources())
def test_a_generated_program_is_stored_as_it_was_defined(defined: DefinedPrograms, source: str) -> None:
    assert defined.problem(source) is None, source


@pytest.mark.parametrize(
    "constant",
    ["1e999", "-1e999", "-0.0", "2e308 - 2e308", "18446744073709551616", 'b"\\xff"', '"\\ud800"', '{(1, "a"): 2}',
     '{"\\ud800": 1}', "{1: 2}", "[1e999, {1}]"],
)  # fmt: skip
def test_a_value_that_may_not_leave_a_program_is_no_obstacle(defined: DefinedPrograms, constant: str) -> None:
    source = f'''
HELD = {constant}


def t(n: int, s: str):
    """Do it."""
    best = {constant}
    if n:
        tools.write_file(path=s, content=s if n > 1 else {constant})
    return best if n > 1 else {{"held": HELD, s: n}} if n else s
'''
    assert defined.problem(source) is None
