"""The sample output in the README is what the commands print, except hashes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_command_line_page import demand_shown, typed
from tests.surfaces.conftest import Albert

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
BASE = 'def base(text: str) -> str:\n    """Be called."""\n    return text.upper()\n'
TOP = 'def top(text: str) -> str:\n    """Call another."""\n    return tools.base(text=text) + "!"\n'


def test_the_readme_shows_what_the_commands_print(tmp_path: Path) -> None:
    albert = Albert(tmp_path)
    shutil.copytree(ROOT / "examples", albert.project / "examples")
    # An agent that defines it again, after the examples were defined, defines the same version.
    assert PROGRAMS[0] == (ROOT / "examples" / "tools" / "find_and_replace.tool").read_text(encoding="utf-8")
    for name, text in (("base", BASE), ("top", TOP)):
        albert.write(f"{name}.tool", text)
    assert albert("define", "base.tool", "top.tool").code == 0
    albert.write("base.tool", BASE.replace("upper", "lower"))
    sessions = [
        block for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL) if "\n$ albert" in f"\n{block}"
    ]
    shown = [block for block in sessions if any(not line.startswith("$") for line in block.splitlines())]
    assert len(shown) == 2
    commands = typed([block.replace("/tmp/", f"{tmp_path}/made/") for block in shown])
    for command, _ in commands:
        if not command.startswith("albert "):
            subprocess.run(["bash", "-ec", command], cwd=albert.project, check=True)
    demand_shown(albert, [each for each in commands if each[0].startswith("albert ")])
    manifest = re.search(r"```text\n(.*?)```", README, re.DOTALL)
    assert manifest is not None
    assert manifest[1] in albert("review", "find_and_replace").out


@pytest.mark.slow
def test_the_first_commands_work_in_a_clone(tmp_path: Path) -> None:
    albert = Albert(tmp_path)
    shutil.copytree(ROOT / "examples", albert.project / "examples")
    (block,) = re.findall(r"Then try:\n\n```console\n(.*?)```", README, re.DOTALL)
    commands = [line.removeprefix("$ ") for line in block.replace("/tmp/", f"{tmp_path}/made/").splitlines()]
    (tmp_path / "made").mkdir()
    assert len(commands) > 10
    # The last one tries every limit, which takes a while. Its own tests run it.
    assert commands.pop().startswith("albert doctor")
    (tmp_path / "albert").write_text(f'#!/bin/sh\nexec {shlex.join(albert.command)} "$@"\n')
    (tmp_path / "albert").chmod(0o755)
    environ = {**albert.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = "\n".join(commands)
    done = subprocess.run(["bash", "-ec", script], cwd=albert.project, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r'"word": "the",\s+"count": 4', done.stdout)
    assert "\nReads {path}.\n" in done.stdout


@pytest.mark.surfaces
def test_the_readme_hands_tools_to_an_agent_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALBERT_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    names: dict[str, Any] = {}
    exec(PROGRAMS[1].replace("/tmp/project", str(tmp_path / "project")), names)  # noqa: S102
    with names["service"]:
        assert {"read_file", "define_tool"} <= {tool.name for tool in names["tools"]}
