"""Calls of CPython's parser: from several threads, and with the same result in every version of Python."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from albert_tools.grammar.parse import parse
from albert_tools.grammar.python_parser import parse_python
from albert_tools.grammar.second_reading import disagreement


def test_several_threads_parse_at_once() -> None:
    def switch_threads(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)

    # Python code that runs during `ast.parse` lets another thread run.
    gc.callbacks.append(switch_threads)
    try:
        with ThreadPoolExecutor(4) as pool:
            sizes = {len(module.body) for module in pool.map(parse_python, ["x = [1, (2, [3, {4: 5}])]\n" * 50] * 40)}
    finally:
        gc.callbacks.remove(switch_threads)
    assert sizes == {50}


@pytest.mark.parametrize("spec", [">{w}", "{w}", "{w}.{p}f", "a{w!r}b", ""])
def test_a_nested_format_spec_has_the_same_tree_in_every_version(spec: str) -> None:
    parsed = parse(f'x = f"{{name:{spec}}}"\n')
    assert parsed.module is not None
    assert disagreement(parsed.module, parsed.python) is None
