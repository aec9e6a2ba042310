"""An analysis ends when nothing more can be found: going on finds the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.check.checker import check_or_raise
from tests.generators.strategies import Drawn
from tests.helpers.effort import examples
from tests.helpers.generated_tools import generated_tools, some_program

CATALOG = generated_tools(0)


@pytest.mark.slow
@examples(50)
@given(st.data())
def test_going_on_finds_nothing_more(data: st.DataObject) -> None:
    checked = check_or_raise(some_program(Drawn(data.draw), CATALOG).source, CATALOG)
    manifest = analyse(checked)

    def twice(a: Analysis) -> None:
        solve(a)
        solve(a)

    solve = Analysis.solve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Analysis, "solve", twice)
        assert analyse(checked) == manifest
