"""Every stage handles the deepest accepted tree, however deep the caller's stack is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from albert_tools.engine.check.checker import check
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.model.protocols import Catalog
from albert_tools.grammar.parse import MAX_PARSE_DEPTH, parse
from albert_tools.grammar.recursion import with_room
from albert_tools.grammar.unparse import format_source
from albert_tools.testing import registry

R = TypeVar("R")

SHAPES = {
    "conditionals": "1 if x else " * (MAX_PARSE_DEPTH - 1) + "2",
    "brackets": "[" * 50 + "]" * 50,
    "calls": "str(" * 50 + "1" + ")" * 50,
    "signs": "-" * (MAX_PARSE_DEPTH - 2) + "1",
    "operators": "x" + " + x" * 2000,
}


def near_the_limit(call: Callable[[], R], left: int = 60) -> R:
    """Call `call` with about `left` frames left on the stack."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back

    def down(n: int) -> R:
        return down(n - 1) if n > 0 else call()

    return down(sys.getrecursionlimit() - depth - left)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_deepest_tree_on_an_almost_full_stack(shape: str) -> None:
    source = f'def t(x: int) -> Any:\n    """Show."""\n    return {SHAPES[shape]}\n'
    catalog: Catalog = registry()

    def read() -> tuple[Any, ...]:
        parsed = parse(source)
        return parsed.module, parsed.diagnostics, check(source, catalog)

    shallow = read()
    assert near_the_limit(read) == shallow
    if shallow[0] is not None:
        assert near_the_limit(lambda: format_source(source)) == format_source(source)
    checked = shallow[2].checked
    if checked is not None:
        assert near_the_limit(lambda: compile_program(checked)) == compile_program(checked)


def test_endless_recursion_is_an_error() -> None:
    @with_room
    def endless(n: int) -> int:
        return endless.__wrapped__(n + 1)  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(RecursionError):
        endless(0)
