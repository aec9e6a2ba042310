"""Searching lines. A search of the whole text finds the same lines as a search of each line. Bad patterns give a helpful
message."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.line_patterns import LinePattern
from tests.helpers.effort import examples

#: Cases that implementations often treat differently: case beyond ASCII, line ends, characters of several bytes, ends of
#: texts.
CHARACTERS = "abkKsS09 _-.\t\r\n\x0b\x0céÉßſİı\u212a\u2028\U0001f600{}[]()*+?^$|\\"
ATOMS = [*"abkKs9é_ ", ".", "^", "$", r"\b", r"\B", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\.", r"\t", r"\x41"]
ATOMS += [
    "[ab]",
    "[^a]",
    "[a-k]",
    r"[^\w]",
    r"[\s-]",
    "[]a]",
    "[^é-]",
    r"\x{e9}",
    r"\A",
    r"\z",
    "ß",
    "\\\\",
    "",
    "\u212a",
]
ATOMS += [r"\x0a", r"[\x00-\x20]", r"\pL", r"\PL", "[[:^alpha:]]", "(?s:.)", "(?i:K)", "(?-s:.)", r"\C", r"\Qa.\E"]


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.sampled_from(["*", "+", "?", "*?", "{2}", "{0,1}", "{1,}", "{0}"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, counts).map(lambda p: f"({p[0]}){p[1]}"),
        inner.map(lambda p: f"(?:{p})"),
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS), _grown, max_leaves=8)
TEXTS = st.text(CHARACTERS, max_size=30).map(str.encode)


def found(pattern: str, text: bytes, ignore_case: bool = False) -> list[int]:
    return [n for n, _ in LinePattern(pattern, ignore_case).lines(text)]


@examples(100)
@given(PATTERNS, TEXTS, st.booleans())
@example("$", b"a", False)
@example("$", b"\n", False)
@example("$", b"", False)
@example("x*", b"\n\n", False)
@example("a|k", "\u212a".encode(), True)
def test_a_search_of_the_text_finds_the_same_as_a_search_of_each_line(
    pattern: str, text: bytes, ignore_case: bool
) -> None:
    expression = LinePattern(pattern, ignore_case)
    lines = text.decode().removesuffix("\n").split("\n") if text else []
    expected = [(n, line.encode()) for n, line in enumerate(lines, 1) if expression.matches(line)]
    assert list(expression.lines(text)) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "lines"),
    [
        ("TODO", b"a\nTODO b\nc TODO", [2, 3]),
        (r"\d+", "1\n٣\n".encode(), [1]),
        (r"^\s*def \w+\(", b"def f(x):\n    def g():\nundef f(\n", [1, 2]),
        ("", b"a\n\nb", [1, 2, 3]),
        ("$", b"a\n", [1]),
        (r"\Aa\z", b"a\nab\na", [1, 3]),
        ("a{", b"a{\naa", [1]),
        (r"(?i)straSSe", "STRASSE\nstraße".encode(), [1]),
        (r"(?P<x>a)\pL", b"ab\na1", [1]),
        ("[[:digit:]]", b"a\n1", [2]),
        ("é", "e\u0301\né".encode(), [2]),
    ],
)
def test_matching_lines(pattern: str, text: bytes, lines: list[int]) -> None:
    assert found(pattern, text) == lines


def test_case_can_be_ignored() -> None:
    assert found("a.b", b"AxB", ignore_case=True) == [1]
    assert found("AxB", b"axb", ignore_case=True) == [1]


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("(", None),
        ("[b-a]", None),
        ("*", None),
        ("[a", None),
        ("a**", "possessive"),
        (r"(a)\1", "backreferences"),
        ("(?P<x>a)(?P=x)", "backreferences"),
        ("(?=a)", "lookaround"),
        ("(?<!a)b", "lookaround"),
        ("a{1001}", r"write \* or \+"),
        (r"\q", "special character"),
        (r"\Z", r"write \$"),
        (r"\u00e9", r"\\x\{"),
        ("(?z)", r"\(\?i\)"),
        (r"(\pL{500}){2}", "shorter"),
    ],
)
def test_an_invalid_pattern_says_what_to_write(pattern: str, hint: str | None) -> None:
    with pytest.raises(Failure, match="is not a valid pattern: ") as caught:
        LinePattern(pattern)
    assert caught.value.code == "invalid_arguments"
    assert caught.value.details["violations"][0]["field"] == "pattern"
    assert "(?m)" not in caught.value.message
    assert (hint is None) == (caught.value.hint is None)
    assert re.search(hint or "", caught.value.hint or "")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("a\nb", "newline"), (r"a\nb", "newline"), (r"\\\n", "newline"), ("a" * 1001, "1,001"), ("\ud800", "surrogate")],
)
def test_patterns_that_match_the_empty_text(pattern: str, message: str) -> None:
    with pytest.raises(Failure, match=message) as caught:
        LinePattern(pattern)
    assert caught.value.code == "invalid_arguments"


def test_an_escaped_backslash_before_n_is_no_newline() -> None:
    assert found(r"\\n", rb"a\n") == [1]


def test_no_pattern_takes_exponential_time() -> None:
    text = b"a" * 200_000 + b"!\n"
    for pattern in ("(a+)+$", "(a|aa)+b", "(a*)*c", "a?" * 50 + "a" * 50 + "b"):
        assert found(pattern, text) == []


def test_time_is_linear_in_the_lines() -> None:
    expression = LinePattern("^x.*y$")

    def seconds(lines: int) -> float:
        text = b"x some text y\n" * lines
        began = time.process_time()
        assert len(list(expression.lines(text))) == lines
        return time.process_time() - began

    assert min(seconds(40_000) for _ in range(3)) < 20 * min(seconds(10_000) for _ in range(3))
