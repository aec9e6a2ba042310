"""What generated programs do lies inside their manifests: calls, arguments, bounds, results, and what depends on what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check_or_raise
from tests.fuzz.beside import try_program
from tests.generators.strategies import Drawn
from tests.helpers import containment
from tests.helpers.answers import Answers
from tests.helpers.effort import examples
from tests.helpers.generated_tools import generated_tools
from tests.helpers.recorded_run import recorded

CATALOG = generated_tools(0)


@examples(25)
@given(st.data(), st.integers(0, 7))
def test_a_run_lies_inside_its_manifest(data: st.DataObject, seed: int) -> None:
    try_program(Drawn(data.draw), CATALOG, seed, None)


HEAD = 'def t(n: int, s: str, xs: list[int], d: dict[str, int]) -> Any:\n    """Do something."""\n'
ARGUMENTS = {"n": 2, "s": "a", "xs": [3, 4], "d": {"k": 1}}


@pytest.mark.parametrize(
    ("promised", "done", "said"),
    [
        ("tools.read_file(path=s)", "tools.read_file(path='b' + s)", "no planned call allows this"),
        ("tools.read_file(path=s)", "tools.file_info(path=s)", "no planned call for"),
        ("tools.read_file(path=s)", "[tools.read_file(path=s) for x in xs]", "is called 2 times"),
        ("n", "s", "the result 'a' is none of the manifest"),
    ],
)
def test_a_run_outside_its_manifest_is_noticed(promised: str, done: str, said: str) -> None:
    manifest = analyse(check_or_raise(f"{HEAD}    return {promised}\n", CATALOG))
    run = recorded(f"{HEAD}    return {done}\n", "t", ARGUMENTS, CATALOG, {}, Answers(0))
    assert said in str(containment.outside(manifest, run, ARGUMENTS))


@pytest.mark.parametrize(
    ("promised", "done", "said"),
    [
        ("path='x', content='c'", "path='x', content=s", "the argument content"),
        ("path='x', content='c'", "path=s, content='c'", "the argument path"),
    ],
)
def test_a_flow_that_a_manifest_does_not_list_is_noticed(promised: str, done: str, said: str) -> None:
    manifest = analyse(check_or_raise(f"{HEAD}    tools.write_file({promised})\n", CATALOG))
    before, after = (
        recorded(f"{HEAD}    tools.write_file({done})\n", "t", {**ARGUMENTS, "s": text}, CATALOG, {}, Answers(0))
        for text in ("a", "b")
    )
    assert f"{said} of" in str(containment.unexplained(manifest, "parameter:s", before, after))
