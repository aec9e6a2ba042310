"""Commands through the pipeline. The rules decide which files a command sees, and its effects are recorded."""

from __future__ import annotations

import os
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from albert_tools import SyncToolService
from albert_tools.engine.sandbox.command.confinement import found
from tests.helpers.children import Child, Report
from tests.helpers.gate import until

RULES: dict[str, Any] = {"allow": ["bash", "run_program"]}


@pytest.fixture(params=["bwrap", "landlock"])
def kind(request: Any) -> str:
    assert request.param in found().kinds, f"the tests need {request.param}: {found().missing.get(request.param)}"
    return str(request.param)


def rules(kind: str, **section: Any) -> dict[str, Any]:
    return {
        **RULES,
        "tools": {"bash": {"allowed_in_modes": ["NORMAL"], **section}},
        "primitives": {"bash": {"confinement": kind}},
    }


def printed(bench: Any, command: str, **more: Any) -> str:
    return str(bench.value("bash", command=command, **more)["output"])


def filled(bench: Any) -> Path:
    work: Path = bench.work
    for name in (
        "src/a.py",
        "src/secrets/key",
        "build/out",
        "notes.md",
        ".env",
        ".git/hooks/pre-commit",
        ".git/config",
        ".bashrc",
    ):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("content of " + name)
    (work / ".albert" / "governance.yaml").write_text("{}")
    return work


def test_forbidden_files_are_not_visible(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind, forbidden_paths=["secrets", ".env", "*.pem"]))
    work = filled(bench)
    (work / "src/deep.pem").write_text("content of deep.pem")
    said = printed(
        bench,
        "cat src/secrets/key .env src/deep.pem src/a.py notes.md; cat src/*/*; mv src other; cat other/secrets/key",
    )
    assert "content of src/a.py" in said
    assert "content of notes.md" in said
    for hidden in ("src/secrets/key", ".env", "deep.pem"):
        assert f"content of {hidden}" not in said


def test_a_forbidden_file_in_a_read_only_folder_is_not_visible(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind, forbidden_paths=[".env"]))
    (bench.work / ".vscode").mkdir()
    for name in ("tasks.json", ".env"):
        (bench.work / ".vscode" / name).write_text(f"content of {name}")
    said = printed(bench, "cat .vscode/tasks.json .vscode/.env")
    assert said.startswith("content of tasks.json")
    assert "content of .env" not in said


def test_a_folder_with_a_forbidden_file_can_be_listed(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind, forbidden_paths=[".env", "secrets"]))
    for name in (".env", "sub/.env", "sub/a", "src/secrets/inside", "src/b"):
        (bench.work / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.work / name).write_text(f"content of {name}")
    said = printed(bench, "ls -A sub; cat sub/a sub/.env; ls -A src/secrets; find . -name inside")
    assert "content of sub/a" in said
    assert "content of sub/.env" not in said
    assert said.split()[:2] == [".env", "a"]
    assert "inside" not in said


def test_the_first_process_reveals_nothing_about_the_sandbox(make_bench: Any) -> None:
    bench = make_bench(governance=rules("bwrap", forbidden_paths=["secrets", ".env"]))
    filled(bench)
    said = printed(bench, "tr '\\0' '\\n' < /proc/1/cmdline")
    assert "--args" in said
    assert not any(word in said for word in ("secrets", ".env", "--bind", str(bench.work)))


def test_only_allowed_files_are_visible(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind, allowed_paths=["build/**", "build", "*.md"]))
    work = filled(bench)
    said = printed(
        bench, "cat build/out notes.md src/a.py .env; echo new > build/new; echo gone > other; cat .git/config"
    )
    assert "content of build/out" in said
    assert "content of notes.md" in said
    assert "content of src/a.py" not in said
    assert "content of .env" not in said
    assert "content of .git/config" not in said
    assert (work / "build/new").read_text() == "new\n"
    assert not (work / "other").exists()


def test_files_that_others_execute_are_read_only(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind, ordinary_commands=["./try.sh"]))
    work = filled(bench)
    (work / "sub/.git/hooks").mkdir(parents=True)
    (work / "sub/.git/hooks/post-merge").write_text("content of hook")
    protected = [
        ".git/hooks/pre-commit",
        ".git/config",
        ".bashrc",
        ".albert/governance.yaml",
        "sub/.git/hooks/post-merge",
    ]
    before = {name: ((work / name).read_text(), (work / name).stat().st_ino) for name in protected}
    tries = "; ".join(
        f"echo evil >> {name}; rm -f {name}; mv {name} x; ln -sf /etc/passwd {name}" for name in protected
    )
    # A dangerous command asks. The same text inside a file that the owner allows to run does not ask.
    (work / "try.sh").write_text(
        f"#!/bin/bash\n{tries}; mv .git g; mv sub s; mv .albert a; rm -rf .git sub .albert; chmod 777 .git/hooks/*\n"
        f"cat {protected[0]}"
    )
    (work / "try.sh").chmod(0o755)
    assert "content of .git/hooks/pre-commit" in printed(bench, "./try.sh")
    assert {name: ((work / name).read_text(), (work / name).stat().st_ino) for name in protected} == before
    # Git still works in a subfolder without protected files.
    (work / "plain").mkdir()
    assert printed(bench, "touch f 2>/dev/null; echo x > f; cat f", cwd="plain") == "x\n"


def test_folders_beyond_the_workspace_are_read_only(make_bench: Any, kind: str, tmp_path: Path) -> None:
    beyond = tmp_path.resolve() / "beyond"
    other = tmp_path.resolve() / "other"
    for folder in (beyond, other):
        folder.mkdir()
        (folder / "data").write_text(f"content of {folder.name}")
    (other / "private").mkdir()
    (other / "private/key").write_text("content of the key")
    section = {"ordinary_commands": ["rm *"], "forbidden_paths": ["private", f"{other}/private"]}
    bench = make_bench(governance=rules(kind, **{**section, "allowed_paths": ["**", str(beyond), str(other)]}))
    filled(bench)
    said = printed(
        bench, f"cat {beyond}/data {other}/data {other}/private/key; echo x > {beyond}/new; rm {beyond}/data"
    )
    assert "content of beyond" in said
    # A folder with a forbidden file is not visible at all.
    assert "content of other" not in said
    assert "content of the key" not in said
    assert os.listdir(beyond) == ["data"]


def test_too_many_files(make_bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from albert_tools.engine.workspace import sandbox_view

    monkeypatch.setattr(sandbox_view, "MAX_ENTRIES", 3)
    bench = make_bench(governance=rules("bwrap", forbidden_paths=["secrets"]))
    filled(bench)
    error = bench.error("bash", command="echo ran > ran")
    assert (error.code, error.rule) == ("too_large", "exposed")
    assert not (bench.work / "ran").exists()


def test_too_many_forbidden_files(make_bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from albert_tools.engine.sandbox.command import bubblewrap

    monkeypatch.setattr(bubblewrap, "_MAX_WORDS", 400)
    bench = make_bench(governance=rules("bwrap", forbidden_paths=["*.pem"]))
    assert bench.value("bash", command="true")["exit_code"] == 0
    for n in range(100):
        (bench.work / f"{n}.pem").touch()
    error = bench.error("bash", command="echo ran > ran")
    assert (error.code, error.rule) == ("too_large", "exposed")
    assert not (bench.work / "ran").exists()


def test_the_effects_of_a_command_are_recorded(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind))
    (bench.work / "sub").mkdir()
    result = bench.service.invoke("bash", {"command": "echo hi > sub/made; exit 4"})
    assert result.value()["exit_code"] == 4
    effect = result.effects[0]
    assert (effect.kind, effect.facts["exit_code"], effect.facts["confinement"]) == ("execute", 4, kind)
    assert (bench.work / "sub/made").read_text() == "hi\n"


def test_the_rest_of_a_long_output_can_be_read(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind))
    found = bench.value("bash", command="seq 1 40000")
    assert found["truncated"]
    part = bench.value("read_result", handle=found["handle"], pattern="^2000.$")
    assert part["content"].split() == [str(n) for n in range(20000, 20010)]


def test_a_command_from_a_saved_tool(make_bench: Any, kind: str) -> None:
    bench = make_bench(governance=rules(kind))
    (bench.work / "names").write_text("ada\nbob\n")
    bench.define('found = tools.bash(command="sort -r names")\n    return found["output"].split()')
    assert bench.value("t") == ["bob", "ada"]


def held() -> int:
    """The number of child processes and of open descriptors of this process."""
    return len(psutil.Process().children()) + len(os.listdir("/proc/self/fd"))


def repeated_commands(report: Report, base: Path, kind: str) -> None:
    (base / "work/.albert").mkdir(parents=True)
    with SyncToolService.open(home=base / "home", workspace=base / "work", governance=rules(kind)) as service:
        assert service.invoke("bash", {"command": "true"}).ok
        before, count = held(), 10
        for _ in range(count):
            assert service.invoke("bash", {"command": "true"}).ok
        # A process that is kept ready is replaced in the background, so single numbers vary.
        until(lambda: held() - before < count)


def test_no_process_and_no_descriptor_is_left(tmp_path: Path, kind: str) -> None:
    # In a process of its own: other tests leave things to this one.
    assert Child(repeated_commands, tmp_path, kind).wait() == 0


@pytest.mark.parametrize(
    ("command", "trace"),
    [
        ("unzip -l -- -l e.zip", "evil"),
        ("git stash list -- --output=evil", "evil"),
        ("tar tf -- -I./x.sh", "evil"),
        ("find . -name 'a*' -exec make all \\; -exec cp evil.mk Makefile \\;", "evil"),
        ("echo --python-executable=./x.sh > y.log; mypy @y.log a.py", "evil"),
        ("cp -r sub/. .", ".github/ci.yml"),
    ],
)
def test_a_command_that_does_more_than_it_seems_asks(make_bench: Any, command: str, trace: str) -> None:
    bench = make_bench(governance=RULES)
    work: Path = bench.work
    for name, text in {
        "x.sh": "#!/bin/sh\ntouch evil\ncat\n",
        "Makefile": "all:\n",
        "evil.mk": "all:\n\ttouch evil\n",
        "sub/.github/ci.yml": "x",
        "a.py": "",
        "a.txt": "",
    }.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    (work / "x.sh").chmod(0o755)
    with tarfile.open(work / "--", "w") as archive:
        archive.add(work / "a.txt", "a.txt")
    with zipfile.ZipFile(work / "e.zip", "w") as zipped:
        zipped.writestr("evil", "x")
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    result = bench.service.invoke("bash", {"command": command})
    assert not (work / trace).exists()
    assert result.error is not None
    assert result.error.code == "suspended"
