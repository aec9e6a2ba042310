"""The fix that writes `str.format` as an f-string gives the same result as CPython gives for the original."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.check.checker import check
from tests.helpers.effort import examples
from tests.helpers.harness import catalog

VALUES: dict[str, Any] = {"a": 7, "b": "x'y", "c": 2.5, "d": {"k": [1]}}


def fixed(expression: str, before: str = "") -> str | None:
    """The expression with the fix applied; None if there is no fix."""
    source = f'{before}def t(a: Any, b: Any, c: Any, d: Any) -> Any:\n    """T."""\n    return {expression}\n'
    (found,) = check(source, catalog()).diagnostics
    assert found.message == "no method 'format' in the language"
    assert found.hint
    return None if found.fix is None else found.fix.apply(source).split("return ", 1)[1].rstrip("\n")


@pytest.mark.parametrize(
    ("expression", "rewritten"),
    [
        ("'{} has {} rows'.format(a, len(b))", "f'{a} has {len(b)} rows'"),
        ('"{:>8.2f}|{!r}".format(c, b)', 'f"{c:>8.2f}|{b!r}"'),
        ('"{0}{1}{0} {{}}".format(a, b)', 'f"{a}{b}{a} {{}}"'),
        ('"{x}\\n".format(x=d["k"])', "f\"{d['k']}\\n\""),
        ("r'\\d{}'.format(a)", None),
        ('"{}".format(tools.read_file(path=b))', 'f"{tools.read_file(path=b)}"'),
        ('"{}".format(a + 1)', 'f"{(a + 1)}"'),
        ('"{:%H:%M}".format(a)', 'f"{a:%H:%M}"'),
        # None of these can be written as an f-string that does the same.
        ('"{0.real}".format(a)', None),
        ('"{0[k]}".format(d)', None),
        ('"{:{}}".format(a, 9)', None),
        ('"{}{}".format(a, tools.read_file(path=b))', None),
        ('"{0}{0}".format(tools.read_file(path=b))', None),
        ('"{}{}".format(d, d.pop("k"))', None),
        ('"{:d} {}".format(b, d["z"])', None),
        ('"{}".format(a, b)', None),
        ('"{}{0}".format(a)', None),
        ('"{} {}".format(*d)', None),
        ('"{None}".format(**d)', None),
        ('"{".format(a)', None),
        ('"\\x7b}".format(a)', None),
        ('"{}".format(\'"\' + "\'")', None),
        ("b.format(a)", None),
        ('"{}{}".format(d, {1: 2})', None),
    ],
)
def test_the_rewrite(expression: str, rewritten: str | None) -> None:
    assert fixed(expression) == rewritten


def test_reading_a_defaultdict_changes_it() -> None:
    before = "from collections import defaultdict\nE = defaultdict(int)\n"
    assert fixed('"{}{}".format(d, d["k"])', before) is None


fields = st.builds(
    "{{{}{}{}}}".format,
    st.sampled_from(["", "", "", "0", "1", "n", "0.real", "0[k]"]),
    st.sampled_from(["", "", "!r", "!s", "!a"]),
    st.sampled_from(["", "", ":>9", ":.1f", ":05d", ":x", ":{1}"]),
)
templates = st.lists(
    st.one_of(fields, st.sampled_from(["", "é", "{{", "}}", "\\n", "\\\\", '\\"', ":", "!"])), max_size=4
)
arguments = st.sampled_from(
    ["a", "b", "c", "d", "3", "'s'", '"q"', "d['k']", "d['z']", "len(b)", "a / 0", "-a", "a != 7", "b.upper()", "[a]"]
)


@examples(60)
@given(templates, st.lists(arguments, max_size=3), st.sampled_from(["", ", n=a", ", n=d['k']"]))
def test_the_rewrite_does_the_same(parts: list[str], given_: list[str], named: str) -> None:
    original = f'"{"".join(parts)}".format({", ".join(given_)}{named if given_ else named[2:]})'
    rewritten = fixed(original)
    if rewritten is not None:
        assert _outcome(rewritten) == _outcome(original)


def _outcome(expression: str) -> Any:
    try:
        return eval(expression, dict(VALUES))  # noqa: S307 (an expression of this test)
    except Exception as error:
        return type(error)
