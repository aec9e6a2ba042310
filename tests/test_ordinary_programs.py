"""The programs of ordinary Python in `benchmarks/`: what is accepted has CPython's results."""

from __future__ import annotations

from collections import Counter

import pytest

from albert_tools.engine.model.limits import RunLimits
from benchmarks.ordinary import expected_results, outcome, programs
from benchmarks.sides import Albert

#: The share of the programs that is accepted, at least. The others have classes, generators and the like.
ACCEPTED = 0.9


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_ordinary_programs_are_accepted_and_have_the_results_of_cpython(every: int) -> None:
    side = Albert(RunLimits())
    try:
        found = {p.entry: outcome(side, p, expected_results(p)) for p in [*programs()][::every]}
    finally:
        side.close()
    assert {entry: said for entry, said in found.items() if said != "same" and not said.startswith("refused")} == {}
    kinds = Counter(said.partition(":")[0] for said in found.values())
    assert kinds["same"] >= ACCEPTED * len(found)
