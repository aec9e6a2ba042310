"""Commands of approved tools: a fixed command asks nobody again; one that a caller or data can change always asks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from albert_tools import SyncToolService
from albert_tools.engine.model.result import ToolResult
from tests.red_team.reviewed import text_of

RULES = {
    "tools": {
        "bash": {"allowed_in_modes": ["NORMAL"]},
        "run_program": {"allowed_in_modes": ["NORMAL"]},
    }
}
DELETE = "; rm -rf sub; "


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SyncToolService]:
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "work/a.txt").write_text("x\n")
    with SyncToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", governance=RULES) as opened:
        yield opened


def approved(service: SyncToolService, call: str, parameter: str = "q: str") -> str:
    """Save and approve a tool that makes this call. Returns the text of its review."""
    source = f'import shlex\n\n\ndef t({parameter}) -> int:\n    """Run it."""\n    return tools.{call}["exit_code"]\n'
    service.define(source)
    said = text_of(service.review("t"))
    service.approve("t", "ann")
    return said


def asks(result: ToolResult) -> bool:
    return result.error is not None and result.error.code == "suspended"


@pytest.mark.parametrize(
    ("call", "filling", "said"),
    [
        ("""bash(command=f"grep '{shlex.quote(q)}' a.txt")""", DELETE, "NOT QUOTED: {q} can contain any command"),
        ("""bash(command="cat <<EOF\\n" + shlex.quote(q) + "\\nEOF\\n")""", f"\nEOF\n{DELETE[1:]}\n", "NOT QUOTED: {q}"),
        ("""bash(command="ls # " + shlex.quote(q))""", "\nrm -rf sub #", "NOT QUOTED: {q}"),
        ("""bash(command="echo `grep " + shlex.quote(q) + " a.txt`")""", "`;rm -rf sub;`", "NOT QUOTED: {q}"),
        ("""bash(command="x=" + shlex.quote(q) + "; $x")""", "rm -rf sub", "NOT QUOTED: {q}"),
        ("""bash(command="grep " + q + " a.txt")""", DELETE, "NOT QUOTED: {q}"),
        ("""bash(command=shlex.quote(q) + " -c 'rm -rf sub'")""", "sh", "ANY PROGRAM: {q} can change what `… -c"),
        ("""bash(command="sh -c " + shlex.quote(q))""", "rm -rf sub", "ANY PROGRAM: {q} can change what `sh -c …` does"),
        ("""bash(command="echo " + shlex.quote(q) + " | sh")""", "rm -rf sub", "ANY PROGRAM: {q} can change what `sh` does"),
        ("""bash(command="echo " + shlex.quote(q) + " > x; sh x")""", "rm -rf sub", "ANY PROGRAM: {q} can change what `sh x` does"),
        ("""bash(command="echo " + shlex.quote(q) + " | xargs rm -r")""", "sub", "ANY PROGRAM: {q}"),
        ("""bash(command="eval " + shlex.quote(q))""", "rm -rf sub", "ANY PROGRAM: {q}"),
        ("""bash(command="awk " + shlex.quote(q))""", 'BEGIN{system("rm -rf sub")}', "ANY PROGRAM: {q}"),
        ("""bash(command="rm -r " + shlex.quote(q))""", "sub", "ANY PROGRAM: {q}"),
        ("""run_program(argv=["sh", "-c", q])""", "rm -rf sub", "ANY PROGRAM: {q} can change what `sh -c …` does"),
        ("""run_program(argv=["python3", q])""", "-c1", "ANY PROGRAM: {q}"),
        ("""run_program(argv=["env", q, "-rf", "sub"])""", "rm", "ANY PROGRAM: {q}"),
        ("""run_program(argv=[q, "-rf", "sub"])""", "rm", "ANY PROGRAM: {q}"),
        ("""run_program(argv=shlex.split(q))""", "rm -rf sub", "ANY PROGRAM"),
        ("""run_program(argv=["ls"], env=["LD_PRELOAD=" + q])""", "x.so", "with code from {q} (LD_PRELOAD)"),
        ("""bash(command="./x.sh", cwd=q)""", "sub", "ANY PROGRAM: {q} is the folder in which `./x.sh` starts"),
        ("""run_program(argv=["./x.sh"], cwd="sub/" + q)""", "x", "is the folder in which `./x.sh` starts"),
        ("""run_tests(cwd=q)""", "sub", "ANY FOLDER: {q} is the folder in which run_tests works"),
        ("""git(operation="RESET", args=["--soft", "HEAD"], cwd=q)""", "", "ANY FOLDER: {q} is the folder in which git works"),
        ("""run_tests(args=[q])""", "-pplugin", "ANY OPTION: {q} can be an option of run_tests"),
        ("""run_tests(args=[f"--override-ini=addopts={q}"])""", "--basetemp=sub", "ANY OPTION: --override-ini=addopts={q} can be"),
        ("""run_linter(linter="mypy", args=[f"--python-executable={q}"])""", "./x", "ANY OPTION: --python-executable={q} can be"),
        ("""git(operation="RESET", args=[q])""", "--hard", "ANY OPTION: {q} can be an option of git"),
    ],
)  # fmt: skip
def test_a_command_that_the_caller_can_change_is_loud_and_always_asks(
    service: SyncToolService, tmp_path: Path, call: str, filling: str, said: str
) -> None:
    assert said in approved(service, call)
    assert asks(service.invoke("t", {"q": filling}))
    assert (tmp_path / "work/sub").is_dir()


@pytest.mark.parametrize(
    ("operation", "args", "filling"),
    [
        ("COMMIT", ["-m", "--"], "--amend"),
        ("COMMIT", ["-m", "-am"], "--amend"),
        ("COMMIT", ["-m", "x", "--message", "-m"], "-a"),
        ("MERGE", ["-m", "--"], "--squash"),
        ("TAG", ["-m", "-m"], "-f"),
        ("STASH", ["push", "-m", "--"], "-a"),
        ("LOG", ["-S", "--"], "-p"),
    ],
)
def test_the_value_of_an_option_of_git_is_no_option(
    service: SyncToolService, tmp_path: Path, operation: str, args: list[str], filling: str
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True)
    listed = ", ".join(map(repr, args))
    said = approved(service, f"git(operation={operation!r}, args=[{listed}, q])")
    assert "ANY OPTION" not in said
    error = service.invoke("t", {"q": filling}).error
    assert error is not None
    assert (error.code, "looks like an option" in error.message) == ("invalid_arguments", True)


def test_the_value_of_an_option_of_pytest_names_no_file_with_others(service: SyncToolService) -> None:
    assert "ANY OPTION" not in approved(service, 'run_tests(args=["-k", q])')
    error = service.invoke("t", {"q": "@args.txt"}).error
    assert error is not None
    assert (error.code, "no word begins with '@'" in error.message) == ("invalid_arguments", True)


def test_a_fixed_command_is_approved_in_advance(service: SyncToolService, tmp_path: Path) -> None:
    approved(service, """bash(command="rm -rf sub")""")
    assert service.invoke("t", {"q": ""}).ok
    assert not (tmp_path / "work/sub").exists()


@pytest.mark.parametrize(
    "call",
    [
        """bash(command="grep -c " + shlex.quote(q) + " a.txt | sort")""",
        """bash(command=f"head -n {len(q)} a.txt && echo $(grep -e {shlex.quote(q)} a.txt) >> out.log")""",
        """run_program(argv=["grep", "-e", q, "a.txt"])""",
    ],
)
def test_an_operand_of_an_ordinary_command_is_not_loud_and_asks_nobody(service: SyncToolService, call: str) -> None:
    said = approved(service, call)
    assert "NOT QUOTED" not in said
    assert "ANY PROGRAM" not in said
    assert service.invoke("t", {"q": f"'{DELETE}'"}).ok


def test_an_approved_caller_that_fixes_the_command_answers_for_it(service: SyncToolService, tmp_path: Path) -> None:
    approved(service, "bash(command=q)")
    service.define('def outer() -> int:\n    """Clean."""\n    return tools.t(q="rm -rf sub")\n')
    service.approve("outer", "ann")
    assert asks(service.invoke("t", {"q": "rm -rf sub"}))
    assert service.invoke("outer", {}).ok
    assert not (tmp_path / "work/sub").exists()


def test_a_fixed_command_in_a_folder_that_others_execute_asks(service: SyncToolService, tmp_path: Path) -> None:
    (tmp_path / "work/.github").mkdir()
    (tmp_path / "work/.github/ci.yml").write_text("x")
    approved(service, 'bash(command="rm -rf ci.yml", cwd="sub")')
    assert service.invoke("t", {"q": ""}).ok
    approved(service, 'bash(command="rm -rf ci.yml", cwd=".github")')
    assert asks(service.invoke("t", {"q": ""}))
    assert (tmp_path / "work/.github/ci.yml").exists()


def test_an_approval_counts_in_the_folder_that_was_reviewed(service: SyncToolService) -> None:
    approved(service, 'bash(command="./x.sh")')
    for cwd, expected in (("", False), ("sub", True)):
        _, token = service.within(lambda opened, cwd=cwd: opened.open_session("agent", cwd=cwd))
        assert asks(service.invoke("t", {"q": ""}, session=token)) is expected
