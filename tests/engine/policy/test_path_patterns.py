"""Patterns of paths. The index finds the same matches as `pathspec`, and reports the pattern that matched."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from albert_tools.engine.policy import path_patterns
from albert_tools.engine.policy.path_patterns import PathPatterns
from tests.helpers.effort import examples

ROOT, HOME = "/w/project", "/home/user"


@pytest.mark.parametrize(
    ("pattern", "hits", "misses"),
    [
        ("secrets", ["/w/project/secrets", "/w/project/a/secrets/b", "/q/secrets"], ["/w/project/secrets2"]),
        (
            "config",
            ["/w/project/config", "/w/project/x.git/config", "/w/project/.git/x/config"],
            ["/w/project/.git/config"],
        ),
        (".git/config", ["/w/project/.git/config"], ["/w/project/config"]),
        ("*secret*", ["/w/project/a-secret", "/w/project/.git/a-secret"], ["/w/project/.git/refs/heads/a-secret/b"]),
        ("**/.git/conf*", ["/w/project/.git/config", "/w/project/a/.git/config"], ["/w/project/config"]),
        ("**/.git/**", ["/w/project/.git/refs/heads/a", "/w/project/.git/HEAD"], ["/w/project/git/x"]),
        ("**/logs/**", ["/w/project/a/logs/b"], ["/w/project/.git/logs/HEAD", "/w/project/.git/refs/heads/logs/b"]),
        (
            "logs",
            ["/w/project/logs", "/w/project/.git/modules/logs/objects"],
            ["/w/project/.git/worktrees/a/logs/HEAD"],
        ),
        ("*.pem", ["/w/project/.git/x.pem", "/w/project/.git/modules/x.pem/y"], ["/w/project/.git/refs/heads/x.pem"]),
        ("secrets/", ["/w/project/secrets", "/w/project/a/secrets/b"], ["/w/project/a"]),
        (
            "src/*.py",
            ["/w/project/src/a.py", "/w/project/src/a.py/b"],
            ["/w/project/src/b/a.py", "/w/project/x/src/a.py"],
        ),
        ("./y", ["/w/project/y", "/w/project/y/z"], ["/w/project/x/y"]),
        (".", ["/w/project", "/w/project/y/z"], ["/w", "/w/projects"]),
        ("./", ["/w/project/y"], ["/w"]),
        ("a/./b/.", ["/w/project/a/b/c"], ["/w/project/x/a/b"]),
        ("/etc/./x", ["/etc/x"], ["/w/project/x"]),
        ("*.pem", ["/w/project/a.pem", "/etc/x.pem/y", "/w/a.b.pem"], ["/w/project/pem", "/w/project/a.pem2"]),
        ("*.tar.gz", ["/w/a.tar.gz"], ["/w/a.gz"]),
        (".env.*", ["/w/project/a/.env.local", "/q/.env./b"], ["/w/project/.env", "/w/project/a.env.x", "/w"]),
        ("*", ["/w/project/a", "/q"], ["/w/project"]),
        ("**/x/*.key", ["/w/project/x/a.key", "/x/b.key"], ["/w/project/x/y/b.key"]),
        ("build/**/tmp", ["/w/project/build/tmp", "/w/project/build/a/b/tmp/c"], ["/w/project/build/a"]),
        ("/etc", ["/etc", "/etc/shadow"], ["/etcetera", "/w/project/etc"]),
        ("$HOME/.ssh", ["/home/user/.ssh/id"], ["/home/other/.ssh/id"]),
        ("~/.aws/**", ["/home/user/.aws/x/y"], ["/home/user/.awsome"]),
        ("[Ss]ecret/*", ["/w/project/Secret/caf\udce9"], ["/w/project/caf\udce9/x", "/w/project/caf\udce9"]),
        ("config/**/*.pem", ["/w/project/config/a\nb/x.pem"], ["/w/project/config\n/x.pem"]),
        ("a?b/**/*.p?m", ["/w/project/a\nb/c\nd/\n.pem"], []),
        (r"app/\[id]", ["/w/project/app/[id]"], ["/w/project/app/i"]),
        ("a/caf?.txt", ["/w/project/a/caf\udce9.txt"], ["/w/project/a/caf\udce9\udce9.txt"]),
        ("$WORKSPACE/a?", ["/w/project/ab", "/w/project/ab/c"], ["/w/project/abc", "/w/project/x/ab"]),
        ("/", ["/", "/etc", "/w/project/a"], []),
        ("project", ["/w/project/a/project", "/x/project/y"], ["/w/project", "/w/project/a"]),
    ],
)
def test_pattern(pattern: str, hits: list[str], misses: list[str]) -> None:
    rules = PathPatterns([(pattern, "rule")], ROOT, HOME)
    for path in hits:
        assert rules.match(path) == (pattern, "rule"), path
    for path in misses:
        assert rules.match(path) is None, path


@pytest.mark.parametrize("pattern", ["a/b", "./a/b", "$WORKSPACE/a/b", "a/*", "."])
def test_a_workspace_whose_name_looks_like_a_pattern(pattern: str) -> None:
    rules = PathPatterns([(pattern, "rule")], "/w/p[1]*", HOME)
    assert rules.match("/w/p[1]*/a/b") == (pattern, "rule")
    assert rules.match("/w/p1x/a/b") is None


def test_one_name_in_two_spellings_on_systems_that_treat_them_as_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_patterns, "_fold", path_patterns._folded)
    rules = PathPatterns([("Schl\u00fcssel", "rule")], ROOT, HOME)
    assert rules.match("/w/project/schlu\u0308ssel/a")
    assert rules.match("/w/project/SCHL\u00dcSSEL")
    assert rules.match("/w/project/schlussel") is None


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "  ",
        "!x",
        "#x",
        "a/../b",
        "$HOEM/x",
        "a\0b",
        r"u[\]]u",
        r"t[!a\-c]",
        "z[[:alpha:]]",
        "a/ ",
        "n[x",
        "a[/]b",
        "[z-a]",
        "a[]b",
        "a[!]b",
    ],
)
def test_no_pattern(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|known|class"):
        PathPatterns([(pattern, "")], ROOT, HOME)


PARTS = st.sampled_from(["a", "b", "ab", "a.x", "b.x", "c.x.y", "secret"])
GLOBS = st.one_of(PARTS, st.sampled_from(["*", "**", "?", "a*", "*.x", "*.y", "[ab]", "*b*"]))
PATTERNS = st.builds(
    lambda lead, parts, tail: lead + "/".join(parts) + tail,
    st.sampled_from(["", "./", "**/", "$WORKSPACE/"]),
    st.lists(GLOBS, min_size=1, max_size=4),
    st.sampled_from(["", "/"]),
)


@given(st.lists(PATTERNS, max_size=6), st.lists(PARTS, min_size=1, max_size=5))
@example(["**"], ["a"])
@example(["a/**"], ["a"])
def test_the_index_agrees_with_matching_each_pattern(patterns: list[str], parts: list[str]) -> None:
    """In the workspace, a pattern has the same meaning as in a `.gitignore` there."""
    inside = "/".join(parts)

    def alone(pattern: str) -> bool:
        text = pattern.replace("$WORKSPACE/", "/").rstrip("/")
        if text.startswith("./"):
            text = text[1:]
        return GitIgnoreSpec.from_lines([text]).match_file(inside)

    found = PathPatterns([(p, p) for p in patterns], ROOT, HOME).match(f"{ROOT}/{inside}")
    assert (found is not None) == any(alone(p) for p in patterns)
    if found is not None:
        assert alone(found[0])


#: Patterns, and names that they match and hardly match: with wildcards, and with characters that wildcards are made of.
_TEXTS = st.text("ab.*?[]!\\\\ ", min_size=1, max_size=5)
_ODD = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "**/", "./", "a/", "/w/", "a/**/", "*/"]),
    _TEXTS,
    st.sampled_from(["", "/", "/**"]),
)


@given(
    st.lists(_ODD | PATTERNS, min_size=1, max_size=4),
    st.sampled_from(["", "/a", "/a/b", "/b", "/.."]),
    st.lists(st.text("ab.*?[]! ", min_size=1, max_size=5) | PARTS, min_size=1, max_size=20),
)
@example(["a.*"], "", ["a.b", "b.a"])
@example(["*b "], "", ["ab", "ab "])
@example(["a/**"], "/a", ["b"])
@example(["/w/project/a/b"], "/a", ["b", "a"])
def test_the_names_in_a_folder_agree_with_matching_each_path(
    patterns: list[str], folder: str, names: list[str]
) -> None:
    top = os.path.normpath(ROOT + folder)
    try:
        rules = PathPatterns([(p, p) for p in patterns], ROOT, HOME)
    except ValueError:
        assume(False)
    assume(rules.match(top) is None)
    assert rules.names_in(top, names) == [name for name in names if rules.match(f"{top}/{name}")]


NAMES = ("a", "ab", "a.x", "c.x.y", "secret", "é")
#: All paths of at most three of these names.
FILES = ["/".join(parts) for n in (1, 2, 3) for parts in itertools.product(NAMES, repeat=n)]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose index has all `FILES`, each as a file in a folder of its own."""
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    lines = "".join(f"100644 {empty}\t{path}/file\n" for path in FILES)
    subprocess.run(["git", "update-index", "--index-info"], input=lines, text=True, cwd=folder, check=True)
    return folder


@given(st.lists(PATTERNS, min_size=1, max_size=4), st.sampled_from(["", "/a", "/a/a.x", "/secret"]))
@example(["a/**/*.x"], "/a")
@example(["*/secret"], "/a")
@example(["**/a/a"], "/a")
@example(["**/a.x/?"], "/a")
@example(["a/a.x/secret", "./ab"], "/a/a.x")
@example(["?"], "")
@example(["[!a]", "a/??/secret"], "")
@example(["[ëé]/**"], "/a")
@examples(60)
def test_git_excludes_the_paths_that_the_patterns_match(index: Path, patterns: list[str], folder: str) -> None:
    """`folder` is the place of the repository in the workspace."""
    top, rules = ROOT + folder, PathPatterns([(p, p) for p in patterns], ROOT, HOME)
    # A folder that is forbidden itself is refused before git runs.
    assume(rules.match(top) is None)
    specs = [f":(top,glob,exclude){glob}" for glob in rules.globs(top)]
    words = ["git", "ls-files", "-z", "--", ":/", *specs]
    done = subprocess.run(words, cwd=index, capture_output=True, text=True, check=True)
    left = {line.removesuffix("/file") for line in done.stdout.split("\0") if line}
    allowed = {path for path in FILES if rules.match(f"{top}/{path}/file") is None}
    # Git matches bytes, so it excludes more for a single unknown character.
    assert left <= allowed if set("?[") & set("".join(patterns)) else left == allowed
