"""Accepted texts, run in real bash with no program to be found: bash must try to run exactly the calls that the reader found.

Bash runs in bubblewrap with an empty file system. It hands each command that it does not find to a function that notes its
arguments.
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

from albert_tools.engine.shell.reader import Call, Reader
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


def ran_by_bash(text: str, folder: Path) -> list[list[str]]:
    """The arguments of each command that bash tried to run."""
    ran = folder / "ran"
    ran.write_bytes(b"")
    sandbox = [str(BWRAP), *_SANDBOX.split(), "--bind", str(ran), "/ran"]
    sandbox += ["--setenv", "BASH_FUNC_command_not_found_handle%%", _NOTE]
    try:
        subprocess.run(
            [*sandbox, "/usr/bin/bash", "-c", text], capture_output=True, timeout=5, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        pass
    noted = ran.read_bytes()[:200_000].decode(errors="surrogateescape")
    return [row.split("\x1f")[:-1] for row in noted.split("\x1e\x1f")[:-1]]


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
@examples(60)
@given(text=st.one_of(_MUTATED, _MUTATED, _MUTATED, _RANDOM))
@example("cd{}a,b} /tmp && ls")
@example("ls {}'x'a,b} {}..b}")
def test_bash_runs_the_calls_that_the_reader_found(tmp_path: Path, text: str) -> None:
    reader = Reader(text)
    try:
        reader.read()
    except Unclear:
        assume(False)
    calls = [action.argv for action in reader.actions if isinstance(action, Call) and action.argv]
    assume(calls and all(words[0].known and words[0].text not in _BUILTINS for words in calls))
    assume("\x00" not in text and "\ud800" not in text)
    for argv in ran_by_bash(text, tmp_path):
        assert any(fits(argv, words) for words in calls), (text, argv, calls)
