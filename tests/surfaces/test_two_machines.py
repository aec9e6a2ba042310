"""Two machines and one database: what is defined on one is reviewed on the other, and runs on both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from albert_tools import SyncToolService
from tests.helpers.postgres import server

from .conftest import Albert, Done, wait_until

COPY = '''
def copy(source: str) -> str:
    """Copy a file.

    Args:
        source: A file.
    """
    return tools.write_file(path="copy.txt", content=tools.read_file(path=source))["path"]
'''
PASSWORD = "s3cret-pw"


@pytest.fixture
def url() -> str:
    """The URL of a home that does not exist yet. The server does not ask for its password."""
    return server().url(f"albert&password={PASSWORD}")


@pytest.fixture
def machine(tmp_path: Path, url: str) -> Callable[[str], Albert]:
    """Make a machine with this name, with a home folder of its own."""

    def make(name: str) -> Albert:
        made = Albert(tmp_path / name)
        made.environ |= {"HOME": str(made.home), "ALBERT_HOME": url}
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            made.environ.pop(variable, None)
        return made

    return make


def stored_texts(url: str) -> str:
    """All that is in the database, as text."""
    with closing(server().connect(url)) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        rows = [row for (name,) in found for row in connection.execute(f"SELECT {name}::text FROM {name}").fetchall()]
    return str(rows)


def test_a_tool_is_defined_here_reviewed_there_and_run_by_both(
    machine: Callable[[str], Albert], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = machine("here"), machine("there")
    here.write("copy.tool", COPY)
    there.write("a.txt", "hello")
    said: list[Done] = []

    def done(machine: Albert, *words: str, code: int = 0) -> Done:
        said.append(machine(*words))
        assert said[-1].code == code, said[-1]
        return said[-1]

    # Rules that one machine imports hold on both.
    there.write("rules.yaml", "tools: {copy: {requires_approval_in_modes: [NORMAL]}}\n")
    done(here, "policy", "init")
    done(there, "policy", "import", "rules.yaml")
    done(here, "define", "copy.tool")
    assert "copy  " in done(there, "review").out
    done(there, "review", "copy", "--approve")
    assert "the run waits" in done(there, "run", "copy", "source=a.txt", code=4).err
    (question,) = done(here, "approvals", "--json").document()["approvals"]
    done(here, "approvals", "answer", question["approval"], "once")
    done(there, "runs", "resume", question["run"])
    assert (there.project / "copy.txt").read_text() == "hello"
    assert "done" in done(here, "runs").out

    # So does the mode, after a moment.
    done(here, "mode", "LOCKDOWN")
    wait_until(lambda: there("run", "read_file", "path=a.txt").code == 3)
    done(there, "mode", "RECOVERY")
    done(here, "mode", "NORMAL")

    # An application uses the same home.
    monkeypatch.setenv("HOME", str(tmp_path / "application"))
    with SyncToolService.open(home=url, workspace=there.project, ask=yes) as service:
        assert service.invoke("copy", {"source": "a.txt"}).value() == "copy.txt"

    assert "the ledger is intact" in done(here, "ledger", "verify").out
    assert "imported by" in done(there, "ledger", "query").out
    facts = done(there, "doctor", "--quick", "--json").document()["facts"]
    assert facts["database"].startswith("postgresql://albert@")
    assert facts["saved"] == "1 tool"
    assert facts["rules"].startswith("governance.yaml in postgresql://")
    with closing(server().connect(url)) as connection:
        connection.execute("UPDATE files SET content = '' WHERE name = 'governance.yaml'")
    assert "not written by `albert policy`" in done(there, "doctor", "--quick", code=1).out
    hinted = done(there, "run", "bash", "command=ls", "--home", url, code=4).err
    assert "--home 'postgresql:///postgres?host=" in hinted
    # Nobody is told the password.
    assert PASSWORD not in "".join(each.out + each.err for each in said) + stored_texts(url)
    assert not any(PASSWORD in path.name or PASSWORD in path.read_text("utf-8", "replace") for path in files(tmp_path))


async def yes(_: object) -> bool:
    return True


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("home", "said"),
    [
        ("mysql://x/y", "a home is a folder or the URL of a PostgreSQL database, not mysql:"),
        (str(Path(f"postgresql://u:{PASSWORD}@host/x")), "the URL of a PostgreSQL database, not postgresql:"),
        (f"postgresql://u:{PASSWORD}@[", "the URL of the database can't be read"),
        (f"postgresql://u:{PASSWORD}@/x?host=/nowhere", "postgresql://u@/nowhere/x"),
    ],
)
def test_a_home_that_can_not_be_used(albert: Albert, home: str, said: str) -> None:
    for words in (("runs",), ("tools",), ("define", albert.write("copy.tool", COPY)), ("mode", "ALERT")):
        failed = albert(*words, env={"ALBERT_HOME": home})
        assert failed.code == 1
        assert said in failed.err
        assert PASSWORD not in failed.err
