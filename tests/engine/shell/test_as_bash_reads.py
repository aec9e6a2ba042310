"""Accepted texts, run in real shells with no program to be found: they must try to run exactly the calls that the reader found.

The shells run in bubblewrap with an empty file system. Bash hands each command that it does not find to a function that notes its
arguments. For `sh`, which is dash or bash, the names of the calls are programs that note theirs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from albert_tools.engine.shell.reader import Reader, SimpleCommand
from albert_tools.engine.shell.word import Unclear, Word
from tests.helpers.effort import examples

BWRAP = shutil.which("bwrap")
pytestmark = pytest.mark.skipif(BWRAP is None, reason="bubblewrap is needed to run texts safely")

_DATA = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
_COMMANDS = [*_DATA["ordinary"], *_DATA["unknown"], *(c for rows in _DATA["dangerous"].values() for c in rows)]
# Builtins do something else than run a program, or wait.
_BUILTINS = frozenset(
    "coproc command builtin wait printf exec eval . source trap test [ time let unset shopt alias enable bind complete compgen "
    "sleep ulimit kill read echo cd pwd : true false exit return break continue set umask type times hash jobs fg bg disown "
    "dirs pushd popd help history getopts mapfile readarray caller suspend logout local declare typeset readonly fc".split()
)
_BASES = [c for c in _COMMANDS if len(c) < 200 and not re.search(r"\b(sleep|ulimit|kill|exec|read)\b", c)]
_BITS = [*"ab \t\n;&|<>(){}[]$`'\"\\#!*?~=,.-/0:@^%+"]
_BITS += [
    "p1 ",
    " p1 x",
    " p2 x",
    "$(",
    "${",
    "((",
    "))",
    "[[",
    " ]]",
    "<<E",
    "\nE\n",
    "<(",
    "<<'E'\n",
    "E \n",
    "$'",
    "\\'",
    '\\"',
]
_BITS += [
    '"$(',
    "\\\n",
    " \\\n",
    "if ",
    "then ",
    "fi",
    "do ",
    "done",
    " for x in ",
    "case a in a) ",
    " esac",
    "! ",
    "{ ",
    "; }",
    "#",
    " #",
]
_BITS += [
    "<<<",
    ">x",
    "2>",
    "&>",
    ">&",
    "|&",
    "||",
    "&&",
    ";;",
    "$x",
    "${x}",
    "${x:-'",
    "'}",
    "\r",
    "\x0c",
    "\xa0",
    "\u3000",
    "é",
]
_BITS += [
    "[ a ]",
    "function f ",
    "=(",
    "a=",
    "x[0]=",
    "{a,b}",
    "{1..3}",
    "`p1`",
    "$((1))",
    "$[",
    "p1 <<E | p2\n",
    "{x}>y ",
    "@(a|b)",
    "A+=p1 ",
    "+=",
]

_EDIT = st.tuples(st.integers(0, 200), st.sampled_from([0, 0, 0, 1, 2, 5]), st.sampled_from(_BITS))
_MUTATED = st.builds(
    lambda base, edits: _edited(base, edits), st.sampled_from(_BASES), st.lists(_EDIT, min_size=1, max_size=4)
)
_RANDOM = st.lists(st.sampled_from(_BITS), min_size=2, max_size=14).map("".join)


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    for at, removed, added in edits:
        at = at % (len(text) + 1)
        text = text[:at] + added + text[at + removed :]
    return text


_SANDBOX = """
    --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev
    --tmpfs /w --chdir /w --unshare-all --die-with-parent
    --clearenv --setenv PATH /nonexistent --setenv HOME ~ --setenv LANG C.UTF-8
"""
_NOTE = "() {  printf '%s\\037' \"$@\" $'\\036' >> /ran; return $((RANDOM%2)); }"


def ran(shell: str, text: str, folder: Path, *more: str) -> tuple[list[list[str]], str]:
    """The arguments of each command that the sandbox notes in ``/ran``, and what the shell says."""
    noted = folder / "ran"
    noted.write_bytes(b"")
    sandbox = [str(BWRAP), *_SANDBOX.split(), "--bind", str(noted), "/ran", *more]
    try:
        done = subprocess.run(
            [*sandbox, shell, "-c", text],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=5,
            stdin=subprocess.DEVNULL,
        )
        said = done.stderr
    except subprocess.TimeoutExpired as stopped:
        said = stopped.stderr or b""
    rows = noted.read_bytes()[:200_000].decode(errors="surrogateescape").split("\x1e\x1f")[:-1]
    return [row.split("\x1f")[:-1] for row in rows], said.decode(errors="surrogateescape")


def ran_by_bash(text: str, folder: Path) -> list[list[str]]:
    """The arguments of each command that bash tried to run."""
    return ran("/usr/bin/bash", text, folder, "--setenv", "BASH_FUNC_command_not_found_handle%%", _NOTE)[0]


_STUB = '#!/usr/bin/dash\nprintf \'%s\\037\' "${0##*/}" "$@" "$(printf \'\\036\')" >> /ran\n'
#: What dash and bash say about a program that is not there. The processes of a pipeline may write into one line.
_NOT_FOUND = re.compile(r"^.*: (?:line )?\d+: (.*?): (?:command )?not found", re.MULTILINE)


def ran_by_sh(shell: str, text: str, names: set[str], folder: Path) -> tuple[list[list[str]], set[str]]:
    """The arguments of each command with one of these names, and the names of all others that a shell tried to run."""
    stubs = folder / "stubs"
    shutil.rmtree(stubs, ignore_errors=True)
    stubs.mkdir()
    for name in names:
        if "/" not in name and len(name.encode()) < 200 and name not in ("", ".", ".."):
            (stubs / name).write_text(_STUB, encoding="utf-8")
            (stubs / name).chmod(0o755)
    found, said = ran(shell, text, folder, "--ro-bind", str(stubs), "/stubs", "--setenv", "PATH", "/stubs")
    return found, set(_NOT_FOUND.findall(said))


def fits(argv: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether the words may become these arguments."""
    pattern = ""
    for word in words:
        if word.known:
            pattern += re.escape(word.text) + "\x1f"
        else:
            pattern += "[^\x1f]*\x1f" if word.single else "(?:[^\x1f]*\x1f)*"
    return re.fullmatch(pattern, "".join(f"{word}\x1f" for word in argv), re.DOTALL) is not None


@pytest.mark.hypothesis
@examples(30, 1800)
@given(text=st.one_of(_MUTATED, _MUTATED, _MUTATED, _RANDOM))
@example("cd{}a,b} /tmp && ls")
@example("ls {}'x'a,b} {}..b}")
@example("p1 `p2 '`;p3 x;`' p4`")
def test_bash_runs_the_calls_that_the_reader_found(tmp_path: Path, text: str) -> None:
    reader = Reader(text)
    try:
        reader.read()
    except Unclear:
        assume(False)
    calls = [action.argv for action in reader.actions if isinstance(action, SimpleCommand) and action.argv]
    assume(calls and all(words[0].known and words[0].text not in _BUILTINS for words in calls))
    assume("\x00" not in text and "\ud800" not in text)
    for argv in ran_by_bash(text, tmp_path):
        assert any(fits(argv, words) for words in calls), (text, argv, calls)


@pytest.mark.hypothesis
@examples(30, 1800)
@given(text=st.one_of(_MUTATED, _MUTATED, _MUTATED, _RANDOM))
@example("ls -la; p1 'a b' \"c\" | p2 && p3 &")
@example("A+=/../../usr/bin/find wc -delete")
@example("A=1 p1 $(p2 x) `p3`; case a in a) p4;; esac")
def test_each_sh_runs_the_calls_that_the_reader_found(tmp_path: Path, text: str) -> None:
    reader = Reader(text, posix=True)
    try:
        reader.read()
    except Unclear:
        assume(False)
    calls = [action.argv for action in reader.actions if isinstance(action, SimpleCommand) and action.argv]
    assume(calls and all(words[0].known and words[0].text not in _BUILTINS for words in calls))
    assume("\x00" not in text and "\ud800" not in text)
    names = {words[0].text for words in calls}
    for shell in ("/usr/bin/dash", "/usr/bin/bash"):
        found, missing = ran_by_sh(shell, text, names, tmp_path)
        assert missing <= names, (shell, text, missing)
        for argv in found:
            assert any(fits(argv, words) for words in calls), (shell, text, argv, calls)
