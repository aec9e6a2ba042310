"""The work of the front end is proportional to the source: a source of twice the length executes at most twice as many lines.

Its memory may grow with the square: the analysis keeps for each value all that it comes from. Neither depends on the machine.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check
from albert_tools.engine.compile.program import compile_program
from tests.generators import strategies
from tests.helpers.effort import examples
from tests.helpers.generated_tools import generated_tools, some_program

CATALOG = generated_tools(0)
#: The largest growth when a source doubles. Tables grow in steps, and a limit may apply to only one of the two sources.
MOST_LINES, MOST_MEMORY = 2.5, 4.0
COPIES = 8


def lines_executed(work: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def peak_memory(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def judge(source: str) -> None:
    """Do all that the judging process does."""
    checked = check(source, CATALOG).checked
    if checked is not None:
        analyse(checked)
        compile_program(checked)


def assert_bounded_growth(source_of: Callable[[int], str]) -> None:
    judge(source_of(COPIES))
    for measure, most in ((lines_executed, MOST_LINES), (peak_memory, MOST_MEMORY)):
        single, twice = (measure(lambda n=n: judge(source_of(n))) for n in (COPIES, 2 * COPIES))  # type: ignore[misc]
        assert twice <= most * single, (measure.__name__, single, twice, source_of(1))


@st.composite
def bodies(draw: strategies.Draw) -> tuple[str, str, str]:
    """A program in three parts. The middle is the body of the tool."""
    source = some_program(strategies.Drawn(draw), CATALOG).source
    head, _, rest = source.partition("    out = []\n")
    body, _, end = rest.rpartition("    return ")
    return head + "    out = []\n", body or "    print(n)\n", "    return " + end


@examples(2, 90)
@given(bodies())
def test_a_longer_body_needs_proportionally_more_work(parts: tuple[str, str, str]) -> None:
    head, body, end = parts
    assert_bounded_growth(lambda copies: head + body * copies + end)


@pytest.mark.slow
@examples(4)
@given(strategies.texts())
def test_a_longer_text_of_any_kind_needs_proportionally_more_work(text: str | bytes) -> None:
    readable = text.decode(errors="replace") if isinstance(text, bytes) else text
    # Of short texts, the work is that of a first call.
    unit = (readable + "\n") * (1 + 200 // (len(readable) + 1))
    assert_bounded_growth(lambda copies: unit * copies)
