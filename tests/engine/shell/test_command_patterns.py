"""The owner's patterns of commands: what a star stands for, in time that no word of an agent's can stretch."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.shell.command_patterns import matches, may_match


@pytest.mark.parametrize(
    ("pattern", "argv", "fits"),
    [
        ("git status", ["git", "status"], True),
        ("git status", ["git", "status", "-s"], False),
        ("git *", ["git"], True),
        ("ls tests/*", ["ls", "tests/"], True),
        ("ls tests/*", ["ls", "test/x"], False),
        ("ls a*a", ["ls", "a"], False),
        ("ls a*a", ["ls", "aa"], True),
        ("ls *.py", ["ls", ".py\n.py"], True),
        ("ls a**b", ["ls", "ab"], True),
        ("ls ''", ["ls", ""], True),
        ("curl https://*.example.org/*", ["curl", "https://a.example.org/b"], True),
        ("curl https://*.example.org/*", ["curl", "https://example.org/b"], False),
    ],
)
def test_what_fits(pattern: str, argv: list[str], fits: bool) -> None:
    assert matches(pattern, argv) is fits
    assert may_match(pattern, argv) is fits


@given(st.text("ab*", min_size=1, max_size=8).filter(lambda p: p != "*"), st.text("ab", min_size=1, max_size=10))
def test_a_star_in_a_word_is_any_characters(pattern: str, word: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), word) is not None
    if set(pattern) != {"*"}:
        assert matches(f"x {pattern}", ["x", word]) is expected


def test_many_stars_and_a_long_word_come_to_an_end() -> None:
    # Looking back from each star would take longer than anybody lives.
    assert not matches("x " + "*a" * 12 + "*b*c", ["x", "ab" * 16_000])


def test_options_before_a_further_word_hide_nothing() -> None:
    assert may_match("git commit *", ("git", "-C", "sub", "commit", "-m", "x"))
    assert may_match("git commit *", ("git", "--no-pager", "commit"))
    assert may_match("kubectl delete *", ("kubectl", "-n", "x", "--context=y", "delete", "pod"))
    assert may_match("make deploy", ("make", "A=1", "-j4", "deploy"))
    assert may_match("npm run deploy *", ("npm", "run", "-w", "app", "--silent", "deploy"))
    assert not may_match("npm run deploy", ("npm", "run", "deploy", "--dry-run"))
    assert not may_match("git commit *", ("git", "-C", "sub", "log", "commit"))
    assert not may_match("make deploy", ("make", "test", "deploy"))
