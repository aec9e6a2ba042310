"""Patterns of paths: the paths that they match, and the invalid patterns. No pattern takes long."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.builtins.files.globs import Globs
from albert_tools.engine.model.failure import Failure

PATHS = ["a.py", "a.pyc", ".hidden", "src/a.py", "src/b/a.py", "src/b/test_a.py", "x/src/a.py", "docs/a-b.md", "[x]"]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("*.py", ["a.py", "src/a.py", "src/b/a.py", "src/b/test_a.py", "x/src/a.py"]),
        ("src/*.py", ["src/a.py"]),
        ("./src/*.py", ["src/a.py"]),
        ("/a.py", ["a.py"]),
        ("./a.py", ["a.py"]),
        ("**/a.py", ["a.py", "src/a.py", "src/b/a.py", "x/src/a.py"]),
        ("src/**", ["src/a.py", "src/b/a.py", "src/b/test_a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/a.py", "src/b/test_a.py"]),
        ("**/src/*.py", ["src/a.py", "x/src/a.py"]),
        ("**/b/**", ["src/b/a.py", "src/b/test_a.py"]),
        ("**", PATHS),
        ("*", PATHS),
        ("*.{py,md}", ["a.py", "src/a.py", "src/b/a.py", "src/b/test_a.py", "x/src/a.py", "docs/a-b.md"]),
        ("{src,docs}/*", ["src/a.py", "docs/a-b.md"]),
        ("{a.{py,pyc},x}", ["a.py", "a.pyc", "src/a.py", "src/b/a.py", "x/src/a.py"]),
        ("?.py", ["a.py", "src/a.py", "src/b/a.py", "x/src/a.py"]),
        ("[!a-f]*", [".hidden", "src/b/test_a.py", "[x]"]),
        ("a[-_]b.md", ["docs/a-b.md"]),
        ("\\[x]", ["[x]"]),
        ("[[]x[]]", ["[x]"]),
        ("A.py", []),
        ("src", []),
        (".*", [".hidden"]),
        ("**/**/test_a.py", ["src/b/test_a.py"]),
        ("*t*a*.p*y", ["src/b/test_a.py"]),
    ],
)
def test_matching_paths(pattern: str, matching: list[str]) -> None:
    globs = Globs([pattern])
    assert [p for p in PATHS if globs.matches(p)] == matching


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/",
        "./",
        "[a",
        "[!]",
        "a\\",
        "\ud800",
        "../x",
        "a/../b",
        "a\0",
        "x" * 1001,
        "{a,b}" * 7,
        "{a,b}/" * 6 + "x/" * 2,
    ],
)
def test_invalid_patterns(pattern: str) -> None:
    with pytest.raises(Failure) as caught:
        Globs([pattern], "exclude")
    assert caught.value.code == "invalid_arguments"
    assert caught.value.message.startswith("exclude: ")


@pytest.mark.parametrize(
    "pattern", ["*a" * 400 + "b", "**/" * 300 + "b", "{*,**}/" * 5 + "b", "?*" * 400, "**/a*a*b/" * 100]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    globs = Globs([pattern])
    # A matcher that backtracks does not finish here.
    assert not globs.matches("a" * 255)
    assert not globs.matches("/".join(["a" * 20] * 190))


def test_many_patterns_take_bounded_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for patterns in (["?" * 990] * 16, ["*" + "?a" * 490] * 25, [f"**/{'a*b*c*' * 8}{n}" for n in range(300)]):
        globs = Globs(patterns)
        assert not globs.matches("/".join(["abc"] * 1000))
    assert globs.matches("x/" + "abc" * 8 + "299")
    assert Globs(f"build-{n}/**/*.pb.py" for n in range(1000)).matches("build-999/a/b.pb.py")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000 * (
        1024 if sys.platform == "darwin" else 1
    )


@pytest.mark.parametrize("pattern", ["?" * 1000, "*a" * 500, "{a,b}" * 6 + "*a" * 480], ids=range(3))
def test_patterns_that_are_too_large_together_are_refused_at_once(pattern: str) -> None:
    read = 0

    def patterns() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield pattern

    with pytest.raises(Failure, match="too large together") as caught:
        Globs(patterns(), "exclude")
    assert caught.value.code == "invalid_arguments"
    assert read * len(pattern) < 70_000


@given(st.text("ab*?/.", min_size=1, max_size=8), st.text("ab./", min_size=1, max_size=8))
def test_single_names_match_as_in_fnmatch(pattern: str, path: str) -> None:
    from fnmatch import fnmatchcase

    pattern, path = pattern.replace("/", "") or "*", path.replace("/", "") or "a"
    if pattern == "**":
        pattern = "*"
    if pattern != "..":
        assert Globs([pattern]).matches(path) == fnmatchcase(path, pattern)
