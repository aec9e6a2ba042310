"""Which commands let a session see private data: those that name a private file, and those that may read files nobody named."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Question, SyncToolService

RULES: dict[str, Any] = {
    "private_paths": ["customers.csv", "conf/secret.txt"],
    "allow": ["bash", "run_program", "git", "move_file", "copy_file", "run_tests"],
    "tools": {
        "bash": {"ordinary_commands": ["*"]},
        "run_program": {"ordinary_commands": ["*"]},
        "git": {"allowed_operations": ["SHOW", "LOG", "DIFF", "STATUS", "STASH"]},
    },
}

SEE = [
    ("bash", {"command": "cat customers.csv"}),
    ("bash", {"command": 'cat cus""tomers.csv'}),
    ("bash", {"command": "cat cust*"}),
    ("bash", {"command": "cat [c]ustomers.csv"}),
    ("bash", {"command": "cat < cust'omers.csv'"}),
    ("bash", {"command": "x=customers; cat $x.csv"}),
    ("bash", {"command": "find . -type f -exec cat {} +"}),
    ("bash", {"command": "ls | xargs cat"}),
    ("bash", {"command": "grep -r Ada"}),
    ("bash", {"command": "grep -re Ada -e Eve"}),
    ("bash", {"command": "grep -r Ada ."}),
    ("bash", {"command": "cd conf && cat secret.txt"}),
    ("bash", {"command": "cat secret.txt", "cwd": "conf"}),
    ("bash", {"command": "cat conf/../customers.csv"}),
    ("bash", {"command": "cat linked"}),
    ("bash", {"command": "cp -r conf copy"}),
    ("bash", {"command": "diff -r conf notes"}),
    ("bash", {"command": "sort --files0-from=list"}),
    ("bash", {"command": "mv customers.csv x; cat x"}),
    ("bash", {"command": "python3 -c 'print(open(\"x\".replace(\"x\", \"cust\" + \"omers.csv\")).read())'"}),
    ("bash", {"command": "git show HEAD:customers.csv"}),
    ("bash", {"command": "git log -p"}),
    ("bash", {"command": "make"}),
    ("bash", {"command": "cat 'unclosed"}),
    ("run_program", {"argv": ["cat", "customers.csv"]}),
    ("run_program", {"argv": ["head", "-n1", "customers.csv"]}),
    ("run_program", {"argv": ["grep", "-f", "customers.csv", "notes"]}),
    ("run_program", {"argv": ["grep", "--file=customers.csv", "notes"]}),
    ("run_program", {"argv": ["sh", "-c", "cat cust*"]}),
    ("run_program", {"argv": ["make"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD:customers.csv"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD"]}),
    ("git", {"operation": "LOG", "args": ["-p", "--", "customers.csv"]}),
    ("git", {"operation": "LOG", "args": ["-p"]}),
    ("git", {"operation": "LOG", "args": ["-S", "Ada"]}),
    ("git", {"operation": "LOG", "args": ["-p", "-S", "a:b"]}),
    ("git", {"operation": "LOG", "args": ["-p", "-S", "--", "HEAD"]}),
    ("git", {"operation": "LOG", "args": ["-p", "-S", "--", "HEAD", "--"]}),
    ("git", {"operation": "DIFF", "args": ["HEAD"]}),
    ("git", {"operation": "DIFF", "args": ["HEAD", "--", ":(glob)*.csv"]}),
    ("git", {"operation": "DIFF", "args": ["HEAD", "--", "conf"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD@{10:00}"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD^{/a:b}"]}),
    ("run_program", {"argv": ["grep", "-vfcustomers.csv", "notes/a.md"]}),
    ("run_tests", {}),
    ("move_file", {"source": "customers.csv", "target": "moved.txt"}),
    ("copy_file", {"source": "customers.csv", "target": "copied.txt"}),
]  # fmt: skip
DO_NOT_SEE = [
    ("bash", {"command": "ls * && echo cust* && stat notes/a.md"}),
    ("bash", {"command": "cat notes/a.md && wc -l notes/a.md | tail -1"}),
    ("bash", {"command": "grep -rn Ada notes"}),
    ("bash", {"command": "cat a.md", "cwd": "notes"}),
    ("bash", {"command": "find . -name '*.md'"}),
    ("bash", {"command": "sed -n 1,3p notes/a.md"}),
    ("bash", {"command": "git status && git log --oneline"}),
    ("run_program", {"argv": ["diff", "notes/a.md", "notes/b.md"]}),
    ("git", {"operation": "STATUS"}),
    ("git", {"operation": "LOG", "args": ["--oneline", "-n5"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD:notes/a.md"]}),
    ("git", {"operation": "DIFF", "args": ["HEAD", "--", "notes"]}),
    ("git_status", {}),
]  # fmt: skip


async def yes(question: Question) -> bool:
    return True


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("private").resolve()
    for folder in ("work", "work/notes", "work/conf"):
        (base / folder).mkdir()
    return base


@pytest.fixture(scope="module")
def service(base: Path) -> Iterator[SyncToolService]:
    with SyncToolService.open(home=base / "home", workspace=base / "work", governance=RULES, ask=yes) as made:
        yield made


@pytest.fixture
def work(base: Path) -> Path:
    """The workspace, as it is before each command."""
    root = base / "work"
    for name in ("customers.csv", "conf/secret.txt", "notes/a.md", "notes/b.md"):
        (root / name).write_text("Ada\n")
    if not (root / ".git").exists():
        (root / "linked").symlink_to("customers.csv")
        for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"]):
            subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)
    return root


def seen(service: SyncToolService, tool: str, arguments: dict[str, Any]) -> set[str]:
    session, token = service.within(lambda s: s.open_session("agent"))
    error = service.invoke(tool, arguments, session=token).error
    assert error is None or not error.denied, error
    return set(service.within(lambda s: s.sessions.seen(session)))


@pytest.mark.parametrize(("tool", "arguments"), SEE, ids=str)
def test_a_command_that_may_read_a_private_file(
    service: SyncToolService, work: Path, tool: str, arguments: dict[str, Any]
) -> None:
    assert seen(service, tool, arguments) == {"private"}


@pytest.mark.parametrize(("tool", "arguments"), DO_NOT_SEE, ids=str)
def test_a_command_that_reads_only_the_files_that_it_names(
    service: SyncToolService, work: Path, tool: str, arguments: dict[str, Any]
) -> None:
    assert seen(service, tool, arguments) == set()


def test_git_names_a_file_that_is_only_in_its_history(service: SyncToolService, work: Path) -> None:
    (work / "customers.csv").unlink()
    (work / "conf" / "secret.txt").unlink()
    for args in (["-p", "--", "customers.csv"], ["-p", "--all", "customers.csv"]):
        assert seen(service, "git", {"operation": "LOG", "args": args}) == {"private"}
    assert seen(service, "git", {"operation": "SHOW", "args": ["HEAD:customers.csv"]}) == {"private"}


def test_where_no_private_file_is_visible_a_command_sees_none(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    rules = RULES | {"forbidden_paths": ["customers.csv"], "private_paths": ["customers.csv", "*.pem"]}
    with SyncToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", governance=rules) as service:
        (tmp_path / "work" / "customers.csv").write_text("Ada")
        assert seen(service, "bash", {"command": "make"}) == set()
        (tmp_path / "work" / "key.pem").write_text("Ada")
        assert seen(service, "bash", {"command": "make"}) == {"private"}
