"""Sources up to the limit of size take time that is proportional to their size, or they are refused early."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from albert_tools.engine.check.checker import check, check_or_raise
from albert_tools.engine.compile.program import compile_program
from albert_tools.grammar.build import MAX_BRANCHES
from albert_tools.grammar.source_error import SourceError
from albert_tools.grammar.source_text import MAX_SOURCE_BYTES
from albert_tools.grammar.unparse import format_source
from albert_tools.testing import registry

CATALOG = registry()
HEAD = 'def t(x: int) -> Any:\n    """Show."""\n'


def filled(before: str, unit: str, after: str, size: int = MAX_SOURCE_BYTES) -> str:
    """A source of about `size` bytes that repeats `unit`. ``{i}`` in it is the number of the repetition."""
    width = len(unit.format(i=10_000).encode())
    return before + "".join(unit.format(i=i) for i in range((size - len(before) - len(after)) // width)) + after


def branches(count: int) -> str:
    more = "".join(f"    elif x == {i}:\n        y = {i}\n" for i in range(2, count + 1))
    return f"{HEAD}    if x == 1:\n        y = 1\n{more}    else:\n        y = 0\n    return y\n"


SOURCES: dict[str, Callable[[], str]] = {
    "starts of f-strings": lambda: filled(HEAD + "    return ?", 'f" ', "\n"),
    "f-strings next to each other": lambda: filled(HEAD + "    return ", 'f"x" ', "?\n"),
    "operators": lambda: filled(HEAD + "    return x", " + x", "\n"),
    "prefixes": lambda: filled(HEAD + "    return ", "- ", "x\n"),
    "calls": lambda: filled(HEAD + "    return x", "()", "\n"),
    "spaces": lambda: filled(HEAD + "    return [x,\n", " ", "x # a\n]\n"),
    "comments in a list": lambda: filled(HEAD + "    return [\n", "x,  # {i}\n", "]\n", 40_000),
    "comments in a head": lambda: filled("def t(x: int) -> Any:\n", "    # {i}\n", '    """Show."""\n    return x\n'),
    "branches": lambda: branches(MAX_BRANCHES),
    "too many branches": lambda: branches(5000),
    "many containers in one loop": lambda: filled(
        filled(HEAD + "    for i in zip(", "x, ", "x):\n", 60_000), "        y = i\n", "    return y\n"
    ),
    "many changes in one loop": lambda: filled(
        HEAD + "    xs = [x]\n    for i in xs:\n", "        xs.append(i)\n", "        break\n    return xs\n"
    ),
    "captures": lambda: filled(HEAD + "    match x:\n        case [", "a{i}, ", "b]: return b\n    return x\n"),
    "public functions": lambda: filled("", "def f{i}(): return 1\n", HEAD + "    return x\n"),
    "bodies of parallel": lambda: filled(
        "def _h(): return tools.read_file(path='a')\n" + HEAD + "    return parallel(", "_h(), ", "_h())\n"
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", SOURCES)
def test_a_hostile_source_takes_linear_time(name: str) -> None:
    source = SOURCES[name]()
    checked = check(source, CATALOG).checked
    if checked is not None:
        compile_program(checked)
    try:
        format_source(source)
    except SourceError:
        pass  # refused, or too large after formatting


@pytest.mark.timeout(20)
def test_a_line_of_f_string_starts_takes_linear_time() -> None:
    assert check(SOURCES["starts of f-strings"](), CATALOG).checked is None


def test_the_longest_chain_of_elif_is_accepted_and_a_longer_one_is_refused() -> None:
    source = branches(MAX_BRANCHES)
    assert compile_program(check_or_raise(source, CATALOG)).lowered.count("elif") == MAX_BRANCHES - 1
    assert format_source(source) == source
    report = check(branches(MAX_BRANCHES + 1), CATALOG)
    assert [d.message for d in report.diagnostics] == ["an if has more than 1,000 branches"]


def test_a_pattern_with_too_many_names_is_refused() -> None:
    names = ", ".join(f"a{i}" for i in range(101))
    source = f"{HEAD}    match x:\n        case [{names}]:\n            return a1\n    return x\n"
    assert [d.message for d in check(source, CATALOG).diagnostics] == ["the pattern binds more than 100 names"]


def test_a_description_is_valid_unicode_on_every_python() -> None:
    """Python 3.13 itself refuses such a docstring; older versions accept it."""
    report = check('def t() -> int:\n    """Give \\ud800."""\n    return 1\n', CATALOG)
    (found,) = report.diagnostics
    assert found.code in ("definition-text", "syntax")
    assert found.hint is not None
    assert "half of a surrogate pair" in f"{found.message} {found.hint}"
