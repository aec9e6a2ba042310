"""`writable_paths`: tools and commands change only what the rules list. The workspace is real, and so is the sandbox."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.sandbox.command.confinement import found

COMMANDS = ("bash", "run_program", "git", "git_status", "run_tests", "run_linter")
WRITABLE = ["src/**", "docs/**", "./NOTES.md"]

#: Each line tries to change something that is not listed. None of it does harm outside the workspace.
ATTACK = """
echo evil > new
echo evil >> tests/a.py
rm tests/a.py
rm -rf tests
mv tests/a.py src/moved
mv src/mine tests/mine
mv src elsewhere
mv tests docs/tests
ln tests/a.py src/hard && echo evil >> src/hard
ln src/mine tests/hard
ln -s ../tests src/link; echo evil >> src/link/a.py; echo evil > src/link/new; rm src/link/a.py
ln -s ../../work/tests/a.py docs/link; echo evil >> docs/link
echo evil > src/../new2
chmod 777 tests/a.py
touch -d 2001-01-01 tests/a.py
truncate -s 0 tests/a.py
mkdir made
mkfifo tests/pipe
cd src; echo evil >> ../tests/a.py; cd ..
echo evil > /proc/self/cwd/new3
rm NOTES.md; mv NOTES.md src/; ln src/mine NOTES.md; mv src/mine NOTES.md
python3 - <<'END'
import os
tries = [
    lambda: os.utime(os.open("tests/a.py", os.O_RDONLY), (0, 0)),
    lambda: os.fchmod(os.open("tests/a.py", os.O_RDONLY), 0o777),
    lambda: os.setxattr("tests/a.py", "user.x", b"1"),
    lambda: os.rename("src/mine", "tests/a.py"),
    lambda: os.open("src/../new4", os.O_CREAT | os.O_WRONLY),
    lambda: os.open(f"/proc/self/fd/{os.open('tests/a.py', os.O_RDONLY)}", os.O_WRONLY | os.O_TRUNC),
    lambda: os.symlink("x", "tests/link"),
    lambda: os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY)),
]
for number, attempt in enumerate(tries):
    try:
        print("DONE", number, attempt())
    except OSError:
        pass
END
"""


@pytest.fixture(params=["bwrap", "landlock"])
def kind(request: Any) -> str:
    assert request.param in found().kinds, f"the tests need {request.param}: {found().missing.get(request.param)}"
    return str(request.param)


def rules(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "writable_paths": WRITABLE,
        "allow": list(COMMANDS),
        "tools": {"bash": {"ordinary_commands": ["./script"]}},
        "primitives": {name: {"confinement": kind} for name in COMMANDS},
        **more,
    }


def filled(bench: Any) -> Path:
    work: Path = bench.work
    for name in ("src/mine", "docs/page", "tests/a.py", "top", "NOTES.md"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x = 1\n")
    return work


def state(work: Path, *listed: str) -> dict[str, Any]:
    """All facts about everything in the workspace that is not listed."""
    seen: dict[str, Any] = {}
    for folder, folders, files in os.walk(work):
        for name in (*folders, *files):
            path = Path(folder, name)
            inside = str(path.relative_to(work))
            if inside != "script" and not f"{inside}/".startswith(listed):
                facts = path.lstat()
                content = path.read_bytes() if path.is_file() else None
                attributes = os.listxattr(path) if path.is_file() else []
                seen[inside] = (facts.st_ino, facts.st_mode, facts.st_mtime_ns, facts.st_nlink, content, attributes)
    return seen


def run_script(bench: Any, text: str) -> str:
    """Run a script that the owner has put in the workspace. The text of a command would ask."""
    script: Path = bench.work / "script"
    script.write_text(text)
    script.chmod(0o755)
    return str(bench.value("bash", command="./script")["output"])


def test_a_command_changes_only_what_is_listed(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind))
    work = filled(bench)
    before = state(work, "src/", "docs/", "NOTES.md/")
    said = run_script(bench, ATTACK)
    assert state(work, "src/", "docs/", "NOTES.md/") == before
    assert "DONE" not in said
    # A listed file can be changed, and remains the same file.
    assert (work / "NOTES.md/").read_text() == "x = 1\n"


def test_a_command_changes_what_is_listed(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind))
    work = filled(bench)
    script = (
        "mkdir -p src/new/deep && echo a > src/new/deep/a; rm docs/page; mv src/mine src/other; chmod 600 src/other\n"
        "echo more >> NOTES.md; cat tests/a.py top; echo t > $TMPDIR/t && cat $TMPDIR/t; echo h > $HOME/h && cat $HOME/h\n"
    )
    assert run_script(bench, script).endswith("x = 1\nx = 1\nt\nh\n")
    assert (work / "src/new/deep/a").read_text() == "a\n"
    assert not (work / "docs/page").exists()
    assert (work / "src/other").exists()
    assert (work / "NOTES.md/").read_text() == "x = 1\nmore\n"


def test_a_missing_folder_is_made_and_a_missing_file_is_not(make_bench: Any, kind: str) -> None:
    listed = ["build/out/**", "./gen/", "./later.md", "tests/**"]
    bench = make_bench(governance=rules(kind, writable_paths=listed, forbidden_paths=["gen"]))
    work = filled(bench)
    said = run_script(bench, "echo a > build/out/a; echo b > build/b; echo c > gen/c; echo d > later.md; ls")
    assert (work / "build/out/a").read_text() == "a\n"
    # What the rules forbid is not made.
    assert not any((work / name).exists() for name in ("build/b", "gen", "later.md")), said
    assert bench.value("write_file", path="later.md", content="made by a tool")


@pytest.mark.parametrize("target", ["tests", "../outside"])
def test_a_listed_link_permits_nothing(make_bench: Any, kind: str, target: str) -> None:
    bench = make_bench(governance=rules(kind, writable_paths=["via/**", "via2/in/**", "src/**"]))
    work = filled(bench)
    (work.parent / "outside").mkdir()
    (work / "via").symlink_to(target)
    (work / "via2").symlink_to(target)
    before = state(work, "src/")
    run_script(bench, "echo evil > via/new; echo evil >> via/a.py; mkdir via2/in; echo evil > via2/in/x")
    assert state(work, "src/") == before
    assert list((work.parent / "outside").iterdir()) == []
    assert bench.error("write_file", path="via/new", content="x").rule in ("symbolic_link", "outside_workspace")
    assert bench.error("write_file", path="tests/new", content="x").rule == "writable_paths"


def test_what_is_hidden_or_protected_stays_so_in_a_listed_folder(make_bench: Any, kind: str) -> None:
    listed = ["src/**", ".vscode/**", "secrets/open/**", ".albert/**", ".git/**"]
    bench = make_bench(governance=rules(kind, writable_paths=listed, forbidden_paths=["secrets", ".env"]))
    work = filled(bench)
    for name in ("src/a/.env", "secrets/open/key", ".vscode/tasks.json", ".vscode/.env", ".git/hooks/pre-commit"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("SECRET" if ".env" in name or "key" in name else "plain")
    for name in ("config", "config.worktree"):
        (work / ".git" / name).write_text("plain")
    attack = (
        "cat src/a/.env secrets/open/key .vscode/.env; mv src/a src/b; cat src/b/.env; rm -rf src/a; mv .vscode v\n"
        "echo evil > .vscode/tasks.json; echo evil > secrets/open/new; echo evil > .albert/new; echo evil > .git/config\n"
        "echo evil > .git/hooks/pre-commit; echo evil > .vscode/new; echo fine >> src/fine; cat .vscode/tasks.json"
    )
    (work / "src/fine").write_text("")
    before = state(work, "src/fine/")
    said = run_script(bench, attack)
    assert "SECRET" not in said
    assert "plain" in said
    assert (work / "src/fine").read_text() == "fine\n"
    assert state(work, "src/fine/") == before


def test_tests_and_linters_change_only_what_is_listed(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind))
    work = filled(bench)
    (work / "tests/a.py").write_text("x   =  1\n")
    (work / "src/mine.py").write_text("x   =  1\n")
    (work / "tests/test_it.py").write_text(
        "def test_outside():\n    open('made', 'w')\n\n\ndef test_inside():\n    open('src/made', 'w')\n\n\n"
        "def test_temporary(tmp_path):\n    (tmp_path / 'x').write_text('x')\n"
    )
    before = state(work, "src/")
    formatted = bench.value("run_linter", linter="ruff-format", args=["tests", "src"])
    assert formatted["exit_code"] != 0
    assert (work / "src/mine.py").read_text() == "x = 1\n"
    ran = bench.value("run_tests", args=["--disable-plugin-autoload", "-q"])
    assert (ran["exit_code"], "1 failed, 2 passed" in ran["stdout"]) == (1, True), ran["stdout"]
    assert "warning" not in ran["stdout"]
    assert (work / "src/made").exists()
    # Caches are in the private folder.
    for words in (["pytest", "-q", "tests"], ["ruff", "check", "src"], ["mypy", "src/mine.py"]):
        done = bench.value("run_program", argv=["python3", "-m", *words], timeout=120)
        assert done["exit_code"] in (0, 1), done["output"]
        assert "cache" not in done["output"].lower()
    assert state(work, "src/") == before
    assert sorted(path.name for path in (work / "src").iterdir()) == ["made", "mine", "mine.py"]


def test_only_one_tool_is_limited(make_bench: Any, kind: str) -> None:
    limited = {
        "bash": {"ordinary_commands": ["./script"], "writable_paths": []},
        "write_file": {"writable_paths": ["docs/**"]},
    }
    bench = make_bench(governance={**rules(kind, tools=limited), "writable_paths": ["docs/**", "tests/**"]})
    work = filled(bench)
    before = state(work)
    assert "x = 1" in run_script(bench, "echo a > docs/a; echo a > src/a; cat tests/a.py")
    assert state(work) == before
    assert bench.value("run_program", argv=["mkdir", "docs/b"])["exit_code"] == 0
    assert bench.value("run_program", argv=["mkdir", "src/b"])["exit_code"] == 1
    assert bench.value("write_file", path="docs/c", content="")
    # Every list must be satisfied.
    assert bench.error("write_file", path="tests/c", content="").rule == "tools.write_file.writable_paths"
    assert bench.error("write_file", path="src/c", content="").rule == "writable_paths"


def test_every_tool_that_changes_files_is_held_to_the_list(make_bench: Any) -> None:
    bench = make_bench(governance={"writable_paths": WRITABLE, "allow": ["delete_file", "move_file"]})
    work = filled(bench)
    before = state(work)
    for name, arguments in {
        "write_file": {"path": "tests/new", "content": ""},
        "edit_file": {"path": "top", "old_text": "1", "new_text": "2"},
        "write_bytes": {"path": "tests/new", "handle": "0" * 64},
        "make_directory": {"path": "tests/new"},
        "delete_file": {"path": "top"},
        "copy_file": {"source": "src/mine", "target": "tests/new"},
        "move_file": {"source": "top", "target": "src/new"},
    }.items():
        error = bench.error(name, **arguments)
        assert (name, error.code, error.rule) == (name, "permission_denied", "writable_paths"), error
        assert "'NOTES.md', 'docs/', 'src/'" in str(error.hint)
    assert state(work) == before
    assert bench.value("copy_file", source="top", target="src/new")
    assert bench.value("move_file", source="src/new", target="docs/new")
    assert bench.value("edit_file", path="NOTES.md", old_text="1", new_text="2")
    assert bench.value("read_file", path="tests/a.py") == "x = 1\n"


def test_a_listed_folder_is_made_with_the_folders_above_it(make_bench: Any) -> None:
    bench = make_bench(governance={"writable_paths": ["gen/deep/x/**", "no/**"], "forbidden_paths": ["no"]})
    work = filled(bench)
    assert bench.error("make_directory", path="gen/deep").rule == "writable_paths"
    assert bench.value("make_directory", path="gen/deep/x/y")["created"]
    assert bench.value("write_file", path="gen/deep/x/a", content="")
    assert bench.error("write_file", path="gen/deep/a", content="").rule == "writable_paths"
    assert bench.error("make_directory", path="no/a").rule == "forbidden_paths"
    assert [path.name for path in (work / "gen").iterdir()] == ["deep"]


def test_git_commits_and_changes_only_what_is_listed(make_bench: Any, kind: str) -> None:
    operations = ["ADD", "COMMIT", "CHECKOUT", "STATUS"]
    settings = {"bash": {"ordinary_commands": ["./script"]}, "git": {"allowed_operations": operations}}
    made = rules(kind, tools=settings)
    made["primitives"]["git"] |= {"user_name": "A", "user_email": "a@example.org"}
    bench = make_bench(governance=made)
    work = filled(bench)

    def by_hand(*words: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", "-C", str(work), *identity, *words], check=True, capture_output=True, text=True
        ).stdout

    by_hand("init", "-b", "main")
    by_hand("add", ".")
    by_hand("commit", "-m", "1")
    by_hand("checkout", "-b", "other")
    (work / "tests/a.py").write_text("x = 2\n")
    by_hand("commit", "-am", "2")
    by_hand("checkout", "main")
    (work / "src/mine").write_text("x = 3\n")
    # A false `.git` names a folder that is none of git's.
    (work / "docs/.git").write_text("gitdir: ../tests\n")
    assert bench.value("git", operation="ADD", args=["src/mine"])["exit_code"] == 0
    assert bench.value("git", operation="COMMIT", args=["-m", "3"])["exit_code"] == 0
    assert by_hand("log", "--format=%s", "-1") == "3\n"
    before = state(work, ".git/", "src/")
    said = bench.value("git", operation="CHECKOUT", args=["other"])["output"]
    assert "unable to unlink old 'tests/a.py'" in said
    assert state(work, ".git/", "src/") == before
    # For other programs, the repository is read-only.
    assert "main" in run_script(bench, "git branch evil; git branch")
    assert "evil" not in by_hand("branch")
    assert bench.value("git_status")["branch"] == "other"
