"""What a command sees of the workspace, if a part of it can't be read."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from albert_tools.engine.authority.authorization import Authority
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance
from albert_tools.engine.workspace.call_judge import CallJudge
from albert_tools.engine.workspace.sandbox_view import shown_and_hidden
from albert_tools.engine.workspace.workspace import Workspace
from tests.helpers.effort import examples

#: Without the capabilities of root that read every folder.
AS_USER = """
import ctypes, struct, sys
from albert_tools.engine.workspace.call_judge import NO_RULES, CallJudge
from albert_tools.engine.workspace.sandbox_view import shown_and_hidden

rules = CallJudge(NO_RULES)
rules.divides = lambda folder: True

header, none = struct.pack("II", 0x20080522, 0), struct.pack("IIIIII", 0, 0, 0, 0, 0, 0)
assert sys.platform != "linux" or ctypes.CDLL(None).capset(header, none) == 0
print(shown_and_hidden(rules, sys.argv[1]))
"""


def test_a_folder_that_can_not_be_read_is_hidden(tmp_path: Path) -> None:
    """A command could make it readable, and then read forbidden files that nobody has found in it."""
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o000)
    try:
        line = [sys.executable, "-c", AS_USER, str(tmp_path)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
    finally:
        keys.chmod(0o700)
    assert done.stdout == f"(None, [{str(keys)!r}])\n"


NAMES = ("a", "b.x", "secret")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with folders of these names, three levels deep, and a file and a link in each."""
    work = tmp_path_factory.mktemp("tree").resolve()
    for folder in itertools.product(NAMES, repeat=3):
        (work / Path(*folder)).mkdir(parents=True)
    for place, _, _ in list(os.walk(work)):
        Path(place, "f.x").touch()
        Path(place, "link").symlink_to("f.x")
    return work


def judge_of(work: Path, owner: dict[str, Any], project: dict[str, Any]) -> CallJudge:
    rules = read_governance(owner).tightened(read_governance(project))
    authority = Authority(Policy(rules.layers(), str(work), str(work.parent)), Modes(None))
    with Workspace(work) as workspace:
        return authority.guarded(ToolDefinition("bash", "", (), {}, ("execute",)), workspace).judge


def seen_one_by_one(judge: CallJudge, work: Path) -> Iterator[str]:
    """All that a command sees, judged path after path: what the rules allow, in folders that are seen or behind none."""
    pending = [(work, judge.allows(str(work)))]
    for folder, seen in pending:
        for path in folder.iterdir():
            allowed = judge.allows(str(path))
            if allowed and (seen or not path.is_symlink()):
                yield str(path)
            if path.is_dir() and not path.is_symlink() and (allowed or not seen):
                pending.append((path, seen or allowed))


_PART = st.sampled_from([*NAMES, "f.x", "link", "*", "**", "*.x", "s*", "[ab]*"])
_PATTERN = st.builds(
    "{}{}".format,
    st.sampled_from(["", "./", "**/", "$WORKSPACE/"]),
    st.lists(_PART, min_size=1, max_size=4).map("/".join),
)
_LISTS = st.fixed_dictionaries(
    {}, optional={"forbidden_paths": st.lists(_PATTERN, max_size=3), "allowed_paths": st.lists(_PATTERN, max_size=3)}
)


@examples(60)
@given(
    st.builds(
        lambda top, tool: {"forbidden_paths": top, "tools": {"bash": tool}}, st.lists(_PATTERN, max_size=3), _LISTS
    ),
    _LISTS,
)
@example({"forbidden_paths": ["./a/secret/**"]}, {})
@example(
    {"tools": {"bash": {"allowed_paths": ["a/**"], "forbidden_paths": ["a/b.x", "*.x"]}}},
    {"allowed_paths": ["**/secret"]},
)
def test_a_command_sees_what_the_rules_allow(tree: Path, owner: dict[str, Any], project: dict[str, Any]) -> None:
    """Whole folders are judged at once, and not searched if the rules treat all in them alike."""
    judge = judge_of(tree, owner, {"tools": {"bash": project}})
    shown, hidden = shown_and_hidden(judge, str(tree))
    tops = [str(tree)] if shown is None else shown
    seen = {
        path
        for top in tops
        for place, folders, files in os.walk(top)
        for path in (*([] if place == str(tree) else [place]), *(f"{place}/{name}" for name in files))
        if not any(path == h or path.startswith(f"{h}/") for h in hidden)
    } | {path for path in tops if os.path.isfile(path)}
    assert seen == set(seen_one_by_one(judge, tree))


def test_a_forbidden_file_that_appears_is_hidden_from_the_next_command(tree: Path) -> None:
    judge = judge_of(tree, {"forbidden_paths": ["*.pem", "a/b.x/keys"]}, {})
    assert shown_and_hidden(judge, str(tree)) == (None, [])
    added = [tree / "a" / "b.x" / "keys", tree / "secret" / "a" / "n.pem"]
    for path in added:
        path.touch()
    assert shown_and_hidden(judge, str(tree)) == (None, [str(path) for path in added])
    for path in added:
        path.unlink()
