"""ripgrep, RE2, and RE2 line by line: the same lines, whatever the pattern and the text."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from albert_tools.builtins.files import line_search, regex_subset
from albert_tools.builtins.files.line_search import Searcher, find_ripgrep, searcher
from albert_tools.engine.model.failure import Failure

RIPGREP = find_ripgrep("/nowhere")
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")

#: What differs most easily between engines: case beyond ASCII, line ends, characters of several bytes, ends of texts.
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


def going() -> None:
    """It is still wanted."""


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.sampled_from(["*", "+", "?", "*?", "{2}", "{0,1}", "{1,}", "{0}"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, counts).map(lambda p: f"({p[0]}){p[1]}"),
        inner.map(lambda p: f"(?:{p})"),
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS), _grown, max_leaves=8)
TEXTS = st.lists(st.text(CHARACTERS, max_size=30).map(str.encode), max_size=5)


def found(engine: Searcher, texts: list[bytes], most: int = 1_000) -> list[list[int]]:
    return engine.lines(texts, most, going)


@needs_ripgrep
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(PATTERNS, TEXTS, st.booleans(), st.integers(1, 6))
@example("$", [b"a", b"", b"\n", b"b\n"], False, 6)
@example("k", ["\u212a K".encode()], True, 6)
@example("a|k", ["\u212a".encode()], True, 6)
@example("x*", [b"\n\n", b"a"], False, 2)
def test_with_ripgrep_and_without(pattern: str, texts: list[bytes], ignore_case: bool, most: int) -> None:
    spelled = regex_subset.read(pattern, ignore_case)
    assert spelled is not None
    with_it, without = (searcher(pattern, ignore_case, "/nowhere", ripgrep=r) for r in (RIPGREP, ""))
    assert found(with_it, texts, most) == found(without, texts, most)
    # And as each line by itself has it, in the pattern's own words; but for what case means beyond ASCII.
    if not ignore_case:
        lines = line_search._re2(pattern, pattern, False, by_line=True)
        assert found(lines, texts, most) == found(without, texts, most)


@needs_ripgrep
def test_ripgrep_is_what_searches() -> None:
    assert type(searcher("a.c", False, "/nowhere")).__name__ == "_Ripgrep"


@pytest.mark.parametrize(
    ("pattern", "text", "lines"),
    [
        ("TODO", b"a\nTODO b\nc TODO", [2, 3]),
        (r"\d+", "1\n٣\n".encode(), [1]),
        (r"^\s*def \w+\(", b"def f(x):\n    def g():\nundef f(\n", [1, 2]),
        ("", b"a\n\nb", [1, 2, 3]),
        ("$", b"a\n", [1]),
        ("a{", b"a{\naa", [1]),
        (r"(?i)straSSe", "STRASSE\nstraße".encode(), [1]),
        (r"(?P<x>a)\pL", b"ab\na1", [1]),
        ("[[:digit:]]", b"a\n1", [2]),
        ("é", "e\u0301\né".encode(), [2]),
        # RE2 by itself finds the long s.
        ("[Aa]|[Ss]", "ſ\nS".encode(), [2]),
    ],
)
def test_what_a_pattern_means(pattern: str, text: bytes, lines: list[int]) -> None:
    for program in {"", RIPGREP or ""}:
        assert found(searcher(pattern, False, "/nowhere", ripgrep=program), [text]) == [lines]


@pytest.mark.parametrize(
    "pattern", ["(", "a**", "[b-a]", r"\1", "(?=a)", "(?<!a)b", "a{1001}", r"\q", "(?z)", "*", "[a"]
)
def test_what_is_no_pattern(pattern: str) -> None:
    for program in {"", RIPGREP or ""}:
        with pytest.raises(Failure) as caught:
            searcher(pattern, False, "/nowhere", ripgrep=program)
        assert caught.value.code == "invalid_arguments"
        assert caught.value.details["violations"][0]["field"] == "pattern"


@pytest.mark.parametrize(
    ("pattern", "said"), [("a\nb", "newline"), (r"a\nb", "newline"), ("a" * 1001, "1,001"), ("\ud800", "surrogate")]
)
def test_patterns_that_can_match_nothing(pattern: str, said: str) -> None:
    with pytest.raises(Failure, match=said) as caught:
        searcher(pattern, False, "/nowhere")
    assert caught.value.code == "invalid_arguments"


def test_patterns_that_take_ages_elsewhere() -> None:
    text = b"a" * 200_000 + b"!\n"
    for program in {"", RIPGREP or ""}:
        for pattern in ("(a+)+$", "(a|aa)+b", "(a*)*c", "a?" * 50 + "a" * 50 + "b"):
            assert found(searcher(pattern, False, "/nowhere", ripgrep=program), [text]) == [[]]


class Nothing:
    """An import system without RE2."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "re2":
            raise ImportError(name)


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "re2", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Nothing(), *sys.meta_path])


@pytest.mark.usefixtures("without_re2")
def test_without_re2_and_without_ripgrep_plain_text_is_left() -> None:
    assert found(searcher("a-b", False, "/nowhere", ripgrep=""), [b"x\na-b"]) == [[2]]
    with pytest.raises(Failure, match=r"'a\.b' needs RE2 or ripgrep, which is not installed") as caught:
        searcher("a.b", False, "/nowhere", ripgrep="")
    assert "plain text" in str(caught.value.hint)
    assert "pip install '.[patterns]'" in str(caught.value.hint)


@needs_ripgrep
@pytest.mark.usefixtures("without_re2")
def test_what_only_re2_takes_is_refused_without_it() -> None:
    assert found(searcher("a.b", True, "/nowhere"), [b"AxB"]) == [[1]]
    with pytest.raises(Failure, match="needs RE2, which is not installed"):
        searcher(r"\pL", False, "/nowhere")


@needs_ripgrep
def test_ripgrep_is_killed_when_the_call_is_over(tmp_path: Path) -> None:
    """One that never answers."""
    slow = tmp_path / "rg"
    slow.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 300\n")
    slow.chmod(0o755)

    def until_it_runs() -> None:
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise Failure("cancelled", "the call is over")

    engine = searcher("a.c", False, "/nowhere", ripgrep=str(slow))
    with pytest.raises(Failure, match="the call is over"):
        # More than a pipe holds: it is not read either.
        engine.lines([b"x" * 1_000_000], 10, until_it_runs)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("code", ["exit 2", "kill -9 $$", "echo nonsense >&2; exit 3"])
def test_a_ripgrep_that_fails_is_done_without(tmp_path: Path, code: str) -> None:
    broken = tmp_path / "rg"
    broken.write_text(f"#!/bin/sh\n{code}\n")
    broken.chmod(0o755)
    assert found(searcher("a.c", False, "/nowhere", ripgrep=str(broken)), [b"abc\n"]) == [[1]]


def test_which_ripgrep_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_for(workspace: Path = Path("/nowhere"), path: str | None = None) -> str | None:
        monkeypatch.setenv("PATH", str(tmp_path / "bin") if path is None else path)
        line_search._installed.cache_clear()
        return find_ripgrep(str(workspace))

    program = tmp_path / "bin" / "rg"
    program.parent.mkdir(mode=0o755)
    assert looked_for() is None
    program.write_text("#!/bin/sh\nexit 1\n")
    assert looked_for() is None
    program.chmod(0o755)
    assert looked_for() == str(program)
    assert looked_for(tmp_path) is None
    program.chmod(0o757)
    assert looked_for() is None
    program.chmod(0o755)
    program.parent.chmod(0o777)
    assert looked_for() is None
    monkeypatch.chdir(program.parent)
    program.parent.chmod(0o755)
    assert looked_for(path=".:") is None
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "rg").symlink_to(program)
    assert looked_for(program.parent, str(tmp_path / "link")) is None
    line_search._installed.cache_clear()


@needs_ripgrep
def test_ripgrep_reads_no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("--invert-match\n--pre=/bin/false\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    assert found(searcher("a.c", False, "/nowhere"), [b"abc\nxyz\n"]) == [[1]]
