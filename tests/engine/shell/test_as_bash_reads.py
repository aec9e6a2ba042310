"""Commands are read as bash itself reads them: words as it expands them, programs where it finds them."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from albert_tools.engine.shell.expand import expanded
from albert_tools.engine.shell.judge import judge_command
from albert_tools.engine.shell.reader import read
from albert_tools.engine.shell.reading_limits import Unreadable
from albert_tools.engine.shell.syntax import Simple

BASH = shutil.which("bash", path="/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash here")

# Nothing here runs anything: no $ but before quotes, no backquotes, no operators.
_BITS = ["a", "b", "{", ",", "}", "..", "1", "3", "'", '"', "\\", "\\\n", "$'", "\\x41", "\\t", "\\101", "x", "-", "="]
_BITS += ['\\"', "$%", "!", "#", "é", "{a,b}"]
_WORD = st.lists(st.sampled_from(_BITS), min_size=1, max_size=9).map("".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(_WORD, min_size=1, max_size=30))
def test_words_come_to_what_bash_makes_of_them(words: list[str]) -> None:
    script, expected = [], []
    for word in words:
        line = f"printf '%s\\0' x {word}"
        try:
            tree, _, _ = read(line)
            command = tree.pipelines[0][0]
            assert isinstance(command, Simple)
            args = expanded(command.words)
        except Unreadable:
            continue
        if len(tree.pipelines) == 1 and all(arg.known for arg in args):
            script.append(f"{line}\nprintf '\\1\\0'\n")
            expected.append([arg.text for arg in args[2:]])
    assume(script)
    environment = {"LANG": "C.UTF-8", "HOME": "~", "PATH": ""}
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--norc"], input="".join(script).encode(), capture_output=True, env=environment, timeout=60
    )
    found = [part.split("\0")[:-1] for part in done.stdout.decode().split("\1\0")[:-1]]
    assert found == expected


def _printed(command: str) -> str | None:
    """The command as bash, which reads it and runs nothing, writes it again; None where it can't."""
    assert BASH is not None
    run = [BASH, "--norc", "--pretty-print", "/dev/stdin"]
    done = subprocess.run(
        run, input=command.encode(), capture_output=True, env={"LANG": "C.UTF-8", "PATH": ""}, timeout=60
    )
    return done.stdout.decode() if done.returncode == 0 and not done.stderr else None


DATA = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))


def test_bash_writes_each_command_so_that_it_has_the_same_parts() -> None:
    if _printed("ls ; pwd") is None:
        pytest.skip("this bash can't print what it reads")
    compared = 0
    # Bash is started for each, so every third will do; what is added lies among them sooner or later.
    commands = [*DATA["ordinary"], *DATA["dynamic"], *(c for row in DATA["dangerous"].values() for c in row)]
    for command in commands[::3]:
        judgement = judge_command(command)
        if any(part.pattern == "unreadable" for part in judgement.parts):
            continue
        printed = _printed(command)
        if printed is None:
            continue
        again = judge_command(printed)
        if any(part.pattern == "unreadable" for part in again.parts):
            # The second reading stumbles over some of what bash writes; then it asks.
            continue
        compared += 1
        assert {(p.verdict, p.pattern, p.argv) for p in again.parts} == {
            (p.verdict, p.pattern, p.argv) for p in judgement.parts
        }, command
    assert compared > 250
