"""Which commands let a session see private data: all that print content of files, while they can see a private file."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Question, SyncToolService
from albert_tools.engine.workspace import private_files
from tests.helpers.gate import until

RULES: dict[str, Any] = {
    "private_paths": ["customers.csv", "conf/secret.txt"],
    "allow": ["bash", "run_program", "git", "move_file", "copy_file", "edit_file", "run_tests"],
    "tools": {
        "bash": {"ordinary_commands": ["*"]},
        "run_program": {"ordinary_commands": ["*"]},
        "git": {
            "allowed_operations": [
                "SHOW",
                "LOG",
                "DIFF",
                "STATUS",
                "STASH",
                "TAG",
                "BRANCH",
                "CHECKOUT",
                "MERGE",
                "ADD",
            ]
        },
    },
}

SEE = [
    ("bash", {"command": "cat customers.csv"}),
    ("bash", {"command": 'cat cus""tomers.csv'}),
    ("bash", {"command": "cat cust*"}),
    ("bash", {"command": "cat < cust'omers.csv'"}),
    ("bash", {"command": "cat notes/a.md"}),
    ("bash", {"command": "echo < customers.csv"}),
    ("bash", {"command": "sha256sum -c notes/a.md"}),
    ("bash", {"command": "git switch -q main; cat notes/a.md"}),
    ("bash", {"command": "x=customers; cat $x.csv"}),
    ("bash", {"command": "find . -type f -exec cat {} +"}),
    ("bash", {"command": "ls | xargs cat"}),
    ("bash", {"command": "grep -r Ada"}),
    ("bash", {"command": "cat secret.txt", "cwd": "conf"}),
    ("bash", {"command": "cat linked"}),
    ("bash", {"command": "sort --files0-from=list"}),
    ("bash", {"command": 'du --files0=cus""tomers.csv'}),
    ("bash", {"command": "mv customers.csv x; cat x"}),
    ("bash", {"command": "python3 -c 'print(open(\"x\".replace(\"x\", \"cust\" + \"omers.csv\")).read())'"}),
    ("bash", {"command": "git show HEAD:customers.csv"}),
    ("bash", {"command": "git show HEAD:conf/secret.txt", "cwd": "notes"}),
    ("bash", {"command": "git log -p"}),
    ("bash", {"command": "git remote -v"}),
    ("bash", {"command": "ls", "env": ["BASH_ENV=customers.csv"]}),
    ("bash", {"command": "make"}),
    ("bash", {"command": "poetry run ls"}),
    ("bash", {"command": "bash -n notes/a.md"}),
    ("bash", {"command": "cat 'unclosed"}),
    ("run_program", {"argv": ["cat", "customers.csv"]}),
    ("run_program", {"argv": ["sh", "-c", "cat cust*"]}),
    ("run_program", {"argv": ["make"]}),
    ("run_program", {"argv": ["bash", "-c", "tee < customers.csv"]}),
    ("run_program", {"argv": ["timeout", "5", "/bin/sh", "-c", "tr a a < linked"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD:customers.csv"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD:notes/a.md"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD:conf/secret.txt"], "cwd": "notes"}),
    ("git", {"operation": "SHOW", "args": ["HEAD"]}),
    ("git", {"operation": "MERGE", "args": ["main"]}),
    ("git", {"operation": "ADD", "args": ["notes/a.md"]}),
    ("bash", {"command": "git add notes/a.md"}),
    ("git", {"operation": "CHECKOUT", "args": ["--merge", "main"]}),
    ("bash", {"command": "git switch -q main"}),
    ("git", {"operation": "LOG", "args": ["-p", "--", "customers.csv"]}),
    ("git", {"operation": "LOG", "args": ["-p"]}),
    ("git", {"operation": "STATUS", "args": ["-v"]}),
    ("git", {"operation": "TAG", "args": ["--format=%(raw)"]}),
    ("git", {"operation": "TAG", "args": ["-l", "--format=%(*raw)"]}),
    ("git", {"operation": "BRANCH", "args": ["--format=%(raw)"]}),
    ("git", {"operation": "LOG", "args": ["-S", "Ada"]}),
    ("git", {"operation": "DIFF", "args": ["HEAD"]}),
    ("git", {"operation": "DIFF", "args": ["HEAD", "--", "notes"]}),
    ("git", {"operation": "LOG", "args": ["--follow", "-p", "--", "notes/a.md"]}),
    ("bash", {"command": "git show HEAD -- notes"}),
    ("git", {"operation": "SHOW", "args": ["HEAD@{10:00}"]}),
    ("git", {"operation": "SHOW", "args": ["HEAD^{/a:b}"]}),
    ("run_tests", {}),
    ("move_file", {"source": "customers.csv", "target": "moved.txt"}),
    ("copy_file", {"source": "customers.csv", "target": "copied.txt"}),
    ("bash", {"command": 'git commit -q --allow-empty -F "conf/../cust""omers.csv"; git log -n1'}),
    ("bash", {"command": "git commit -q --allow-empty -F secret.txt", "cwd": "conf"}),
    ("run_program", {"argv": ["git", "commit", "--allow-empty", "-F", "linked"]}),
    ("bash", {"command": "git commit --dry-run"}),
    ("git", {"operation": "CHECKOUT", "args": ["HEAD:conf", "--", "secret.txt"]}),
    ("git", {"operation": "CHECKOUT", "args": ["HEAD:conf", "--", "-b", "secret.txt"]}),
    ("edit_file", {"path": "customers.csv", "old_text": "Ada", "new_text": "Eve"}),
    ("edit_file", {"path": "customers.csv", "old_text": "Bob", "new_text": "Eve"}),
    ("read_bytes", {"path": ".git/index"}),
    ("search_text", {"pattern": "initial", "path": ".git"}),
]  # fmt: skip
DO_NOT_SEE = [
    ("bash", {"command": "ls * && echo cust* && cd notes"}),
    ("bash", {"command": "find . -name '*.md'"}),
    ("bash", {"command": "ls && git log --oneline"}),
    ("run_program", {"argv": ["mkdir", "-p", "notes/inner"]}),
    ("bash", {"command": "git log --oneline | tee notes/log"}),
    ("run_program", {"argv": ["git", "log", "--format=%an <%ae>"]}),
    ("git", {"operation": "STATUS"}),
    ("git", {"operation": "STATUS", "args": ["-s", "-uno"]}),
    ("git", {"operation": "CHECKOUT", "args": ["-q", "-B", "other", "HEAD"]}),
    ("git", {"operation": "TAG", "args": ["-n"]}),
    ("git", {"operation": "LOG", "args": ["--oneline", "-n5"]}),
    ("git_status", {}),
    ("read_file", {"path": ".git/HEAD"}),
    ("list_directory", {"path": ".git"}),
    ("search_text", {"pattern": "Bob", "path": "notes"}),
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
        for words in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"],
        ):
            subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)
    return root


def seen(service: SyncToolService, *calls: tuple[str, dict[str, Any]]) -> set[str]:
    """What a new session has seen after these calls."""
    session, token = service.within(lambda s: s.open_session("agent"))
    for tool, arguments in calls:
        error = service.invoke(tool, arguments, session=token).error
        assert error is None or not (error.denied or error.code == "internal_error"), error
    return set(service.within(lambda s: s.sessions.seen(s.sessions.line(session.id))))


@pytest.mark.parametrize(("tool", "arguments"), SEE, ids=str)
def test_a_command_that_may_read_a_private_file(
    service: SyncToolService, work: Path, tool: str, arguments: dict[str, Any]
) -> None:
    assert seen(service, (tool, arguments)) == {"private"}


@pytest.mark.parametrize(("tool", "arguments"), DO_NOT_SEE, ids=str)
def test_a_command_that_prints_no_content_of_files(
    service: SyncToolService, work: Path, tool: str, arguments: dict[str, Any]
) -> None:
    assert seen(service, (tool, arguments)) == set()


def test_git_names_a_file_that_is_only_in_its_history(service: SyncToolService, work: Path) -> None:
    (work / "customers.csv").unlink()
    (work / "conf" / "secret.txt").unlink()
    for args in (["-p", "--", "customers.csv"], ["-p", "--all", "customers.csv"]):
        assert seen(service, ("git", {"operation": "LOG", "args": args})) == {"private"}
    for cwd, args in (
        ("", ["HEAD:customers.csv"]),
        ("notes", ["HEAD:customers.csv"]),
        ("notes", ["HEAD:./../customers.csv"]),
        ("notes", ["HEAD", "--", ":/customers.csv"]),
    ):
        call = ("git", {"operation": "SHOW", "args": args, "cwd": cwd})
        assert seen(service, call) == {"private"}, (cwd, args)
    assert seen(service, ("git", {"operation": "SHOW", "args": ["HEAD:notes/a.md"]})) == set()


def test_git_s_own_files_can_have_the_content_of_a_private_file(service: SyncToolService, work: Path) -> None:
    subprocess.run(["git", "-C", str(work), "clone", "-q", "--bare", ".", "bare"], check=True)
    large = work / "bare" / "lfs" / "objects" / "ab" / "cd" / "abcd"
    large.parent.mkdir(parents=True)
    large.write_text("Ada")
    assert seen(service, ("read_file", {"path": "bare/lfs/objects/ab/cd/abcd"})) == {"private"}
    (work / "bare" / "COMMIT_EDITMSG").write_text("a\n\n+Ada\n")
    assert seen(service, ("read_file", {"path": "bare/COMMIT_EDITMSG"})) == {"private"}
    assert seen(service, ("read_file", {"path": "bare/HEAD"})) == set()
    (work / "src" / "objects").mkdir(parents=True)
    (work / "src" / "objects" / "a.md").write_text("Eve")
    assert seen(service, ("read_file", {"path": "src/objects/a.md"})) == set()


def test_where_no_private_file_is_visible_a_command_sees_none(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    rules = RULES | {"forbidden_paths": ["customers.csv"], "private_paths": ["customers.csv", "*.pem"]}
    with SyncToolService.open(home=tmp_path / "home", workspace=tmp_path / "work", governance=rules) as service:
        (tmp_path / "work" / "customers.csv").write_text("Ada")
        assert seen(service, ("bash", {"command": "make"})) == set()
        (tmp_path / "work" / "key.pem").write_text("Ada")
        assert seen(service, ("bash", {"command": "make"})) == {"private"}


def test_the_example_says_what_a_command_could_read(service: SyncToolService, work: Path) -> None:
    session, token = service.within(lambda s: s.open_session("agent"))
    service.invoke("bash", {"command": "cat notes/a.md"}, session=token)
    (example,) = service.within(lambda s: s.sessions.seen(s.sessions.line(session.id))).values()
    assert re.fullmatch(r"the output of bash \(which can read (customers.csv|conf/secret.txt)\)", example), example


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "bash", {"command": command}


def test_a_private_file_in_a_part_that_the_rules_show(tmp_path: Path) -> None:
    """The pattern does not match the folder itself."""
    shown = tmp_path / "work" / "src" / "deep"
    shown.mkdir(parents=True)
    (shown / "customers.csv").write_text("Ada")
    tools = {"bash": RULES["tools"]["bash"] | {"allowed_paths": ["src/**"]}}
    rules = RULES | {"private_paths": ["customers.csv"], "tools": tools}
    with SyncToolService.open(
        home=tmp_path / "home", workspace=tmp_path / "work", governance=rules, ask=yes
    ) as service:
        assert seen(service, bash("cat src/deep/*")) == {"private"}


def test_a_private_file_in_a_folder_outside_the_workspace(tmp_path: Path) -> None:
    for folder in ("work", "data", "other"):
        (tmp_path / folder).mkdir()
    data, other = (tmp_path.resolve() / name for name in ("data", "other"))
    tools = {"bash": RULES["tools"]["bash"] | {"allowed_paths": ["**", f"{data}/**"]}}
    rules = RULES | {"private_paths": ["customers.csv"], "tools": tools}
    with SyncToolService.open(
        home=tmp_path / "home", workspace=tmp_path / "work", governance=rules, ask=yes
    ) as service:
        (other / "customers.csv").write_text("Ada")
        assert seen(service, bash("make")) == set()
        (data / "customers.csv").write_text("Ada")
        assert seen(service, bash("make")) == {"private"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[SyncToolService, Path]]:
    work = tmp_path.resolve() / "work"
    for folder in ("conf", "notes"):
        (work / folder).mkdir(parents=True)
    with SyncToolService.open(home=tmp_path / "home", workspace=work, governance=RULES, ask=yes) as service:
        yield service, work


def test_packages_of_others_have_nothing_private(opened: tuple[SyncToolService, Path]) -> None:
    service, work = opened
    package = work / "node_modules" / "certifi"
    package.mkdir(parents=True)
    (package / "customers.csv").write_text("Ada")
    assert seen(service, bash("make")) == set()
    for name in ("customers.csv", 'cust""omers.csv'):
        assert seen(service, bash(f"cat node_modules/certifi/{name}")) == {"private"}


def test_a_file_that_appears_between_two_commands(opened: tuple[SyncToolService, Path]) -> None:
    service, _ = opened
    write = "touch -r notes x; echo Ada > conf/secret.txt; touch -r notes conf"
    assert seen(service, bash("make"), bash("make")) == set()
    assert seen(service, bash("make"), bash(write), bash("make")) == {"private"}


def test_a_folder_with_too_many_entries_counts(
    opened: tuple[SyncToolService, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, work = opened
    monkeypatch.setattr(private_files, "MAX_SEARCHED", 10)
    assert seen(service, bash("make")) == set()
    for name in range(10):
        (work / "notes" / f"{name}.md").touch()
    assert seen(service, bash("make")) == {"private"}


def test_a_folder_that_nobody_can_search(opened: tuple[SyncToolService, Path]) -> None:
    """A command can make it readable."""
    _, work = opened
    (work / "notes").chmod(0o000)
    try:
        line = [sys.executable, "-c", AS_USER, str(work)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
    finally:
        (work / "notes").chmod(0o700)
    assert done.stdout == f"{work / 'notes'}\n"


#: Without the capabilities of root that read every folder.
AS_USER = """
import ctypes, struct, sys
from albert_tools.engine.policy.path_patterns import PathPatterns
from albert_tools.engine.workspace.private_files import private_file

header, none = struct.pack("II", 0x20080522, 0), struct.pack("IIIIII", 0, 0, 0, 0, 0, 0)
assert sys.platform != "linux" or ctypes.CDLL(None).capset(header, none) == 0
root = sys.argv[1]
print(private_file([], [root], PathPatterns([("*.pem", "")], root, "/home/user"), lambda path: True))
"""


@pytest.mark.parametrize("part", ["cat customers.csv", "cp customers.csv copied"])
def test_what_a_command_shows_or_writes_while_it_runs_counts_at_once(
    service: SyncToolService, work: Path, part: str
) -> None:
    session, token = service.within(lambda s: s.open_session("live"))
    lines: list[str] = []
    command = f"{part}; while [ ! -e go ]; do sleep 0.05; done; rm -f go copied"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(
            service.invoke, "bash", {"command": command}, session=token, log=lambda _, text: lines.append(text)
        )
        try:
            until(lambda: lines or (work / "copied").exists())
            assert service.within(lambda s: s.sessions.seen(s.sessions.line(session.id))) == {
                "private": "customers.csv"
            }
        finally:
            (work / "go").touch()
        assert running.result().ok
