"""Tasks whose tool uses a repository, a database or approvals for files. Each docstring is what the user has asked for."""

from __future__ import annotations

import json
import os

import pytest

from albert_tools import Failure
from tests.agent_tasks.conftest import Desk


def _commit(desk: Desk, message: str, cwd: str = "repo") -> str:
    desk.command("git", "add", "-A", cwd=cwd)
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    desk.command("git", *identity, "commit", "-q", "--allow-empty", "-m", message, cwd=cwd)
    return desk.command("git", "rev-parse", "HEAD", cwd=cwd).strip()


def _repository(desk: Desk) -> None:
    (desk.work / "repo").mkdir()
    desk.command("git", "init", "-q", "-b", "main", cwd="repo")
    desk.command("git", "config", "user.name", "Ann", cwd="repo")
    desk.command("git", "config", "user.email", "ann@example.org", cwd="repo")


@pytest.mark.slow
def test_prepare_release(desk: Desk) -> None:
    """Prepare a release from conventional commits: the next version from the last tag, the change log, a commit and a tag."""
    _repository(desk)
    _commit(desk, "feat: begin")
    desk.command("git", "tag", "v0.9.0", cwd="repo")
    desk.command("git", "tag", "nightly", cwd="repo")
    for message in (
        "fix(io): mend reading",
        "docs: say more",
        "feat: add colours",
        "Merge something",
        "fix: mend writing\n\nLonger.",
    ):
        _commit(desk, message)
    assert desk.call("prepare_release", cwd="repo") == {"version": "0.10.0", "entries": 3}
    assert desk.command("git", "tag", "--points-at", "HEAD", cwd="repo") == "v0.10.0\n"
    assert desk.command("git", "status", "--porcelain", cwd="repo") == ""
    log = desk.read("repo/CHANGELOG.md")
    assert [line.split(" (")[0] for line in log.splitlines() if line] == [
        "# Changes", "## 0.10.0", "### Added", "- add colours", "### Fixed", "- mend reading", "- mend writing",
    ]  # fmt: skip
    with pytest.raises(Failure, match="nothing to release"):
        desk.call("prepare_release", cwd="repo")
    _commit(desk, "refactor!: drop Python 2")
    assert desk.call("prepare_release", cwd="repo")["version"] == "1.0.0"
    assert desk.read("repo/CHANGELOG.md").startswith(
        "# Changes\n\n## 1.0.0\n\n### Changed incompatibly\n\n- drop Python 2 ("
    )
    assert desk.read("repo/CHANGELOG.md").endswith(log.partition("\n\n")[2])
    desk.write({"repo/x": "1"})
    with pytest.raises(Failure, match="not committed"):
        desk.call("prepare_release", cwd="repo")


@pytest.mark.slow
def test_find_first_bad(desk: Desk) -> None:
    """Find by bisection the first commit at which a command fails. A person approves the checkouts and the command. The branch
    is checked out again, also after a refusal."""
    _repository(desk)
    commits = []
    for n in range(9):
        desk.write({"repo/n.txt": f"{n}\n"})
        commits.append(_commit(desk, f"Set {n}"))
    desk.command("git", "tag", "start", commits[0], cwd="repo")
    command = ["grep", "-q", "[0-5]", "n.txt"]
    done = desk.call("find_first_bad", good="start", command=command, cwd="repo")
    assert (done["commit"], done["subject"]) == (commits[6], "Set 6")
    assert len(done["tried"]) <= 5
    assert all(done["tried"][c] == (commits.index(c) < 6) for c in done["tried"])
    assert {"run_program"} <= set(desk.questions)
    assert desk.command("git", "branch", "--show-current", cwd="repo") == "main\n"
    with pytest.raises(Failure, match="succeeds at HEAD"):
        desk.call("find_first_bad", good="start", command=["true"], cwd="repo")
    desk.refused.add("run_program")
    with pytest.raises(Failure) as refused:
        desk.call("find_first_bad", good="start", command=command, cwd="repo")
    assert refused.value.code == "permission_denied"
    assert desk.command("git", "branch", "--show-current", cwd="repo") == "main\n"


def test_migrate_database(desk: Desk) -> None:
    """Bring a SQLite database up to date with numbered SQL files, each in a transaction; an applied file must not change."""
    desk.write(
        {
            "sql/001_users.sql": "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);\n"
            "INSERT INTO users (name) VALUES ('it''s; ann');\n",
            "sql/010_mail.sql": "ALTER TABLE users ADD COLUMN mail TEXT; -- the mail",
            "sql/README.md": "no migration",
        }
    )
    assert desk.call("migrate_database", database="a.db", folder="sql") == {
        "applied": ["001_users.sql", "010_mail.sql"],
        "version": 10,
    }
    assert desk.call("migrate_database", database="a.db", folder="sql")["applied"] == []
    desk.write(
        {
            "sql/011_more.sql": "UPDATE users SET mail = 'x';",
            "sql/012_bad.sql": "DELETE FROM users; INSERT INTO missing VALUES (1);",
        }
    )
    with pytest.raises(Failure, match=r"012_bad\.sql: .*no such table.*applied before it: 011_more\.sql"):
        desk.call("migrate_database", database="a.db", folder="sql")
    assert (
        desk.command("sqlite3", "a.db", "SELECT name, mail FROM users; SELECT MAX(number) FROM migrations")
        == "it's; ann|x\n11\n"
    )
    desk.write({"sql/012_bad.sql": "", "sql/001_users.sql": "CREATE TABLE other (id);"})
    with pytest.raises(Failure, match=r"001_users\.sql has changed"):
        desk.call("migrate_database", database="a.db", folder="sql")


def test_check_database(desk: Desk) -> None:
    """Report the rows of a SQLite database that refer to missing rows, and how much of each column is empty."""
    desk.command(
        "sqlite3",
        "a.db",
        """
        CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE "my book" (id INTEGER PRIMARY KEY, "by" INT REFERENCES author (id), "the ""title"" of" TEXT);
        CREATE TABLE loan (book INT REFERENCES "my book" (id), who INT REFERENCES author (id));
        INSERT INTO author VALUES (1, 'N'), (2, NULL);
        INSERT INTO "my book" VALUES (1, 1, 'a'), (2, 9, NULL), (3, NULL, NULL), (4, 2, NULL);
        INSERT INTO loan VALUES (1, 1), (7, 8);
        """,
    )
    assert desk.call("check_database", database="a.db", report="r.md") == {"orphans": 3, "tables": 3}
    assert desk.read("r.md").split("\n\n") == [
        "# Check of a.db",
        "## author",
        "- 2 rows\n- name: 50% empty",
        "## loan",
        "- 2 rows\n- row 2: who = 8 is not in author.id\n- row 2: book = 7 is not in my book.id",
        "## my book",
        '- 4 rows\n- by: 25% empty\n- the "title" of: 75% empty\n- row 2: by = 9 is not in author.id\n',
    ]


def test_rename_module(desk: Desk) -> None:
    """Rename a Python module and correct the imports. A person approves the move. If the files don't compile, or the person says
    no, everything is as before."""
    files = {
        "pkg/__init__.py": "",
        "pkg/util.py": "def f():\n    return 1\n",
        "pkg/a.py": "from pkg.util import f\nimport pkg.util\n\nprint(pkg.util.f(), 'pkg.utility', my.pkg.util)\n",
        "pkg/b.py": "def g():\n    from pkg import util\n    return util.f()\n",
        "pkg/c.py": "import pkg.util_more\n",
    }
    desk.write(files)
    assert desk.call("rename_module", old="pkg.util", new="pkg.text.helpers") == {
        "changed": ["pkg/a.py", "pkg/b.py"],
        "replaced": 4,
    }
    assert set(desk.questions) == {"move_file", "run_program"}
    assert not (desk.work / "pkg/util.py").exists()
    assert desk.read("pkg/text/helpers.py") == files["pkg/util.py"]
    assert desk.read("pkg/a.py") == files["pkg/a.py"].replace("pkg.util", "pkg.text.helpers").replace(
        "pkg.text.helpersity", "pkg.utility"
    ).replace("my.pkg.text.helpers", "my.pkg.util")
    assert desk.read("pkg/b.py") == "def g():\n    from pkg.text import helpers as util\n    return util.f()\n"
    before = {p: desk.read(p) for p in ("pkg/a.py", "pkg/b.py")}
    for prepare, failing in ((lambda: desk.refused.add("move_file"), ""), (desk.refused.clear, "def broken(:\n")):
        prepare()
        desk.write({"pkg/d.py": failing})
        with pytest.raises(Failure):
            desk.call("rename_module", old="pkg.text.helpers", new="pkg.tools")
        assert {p: desk.read(p) for p in before} == before
        assert (desk.work / "pkg/text/helpers.py").exists()


def test_archive_files(desk: Desk) -> None:
    """Move old files to an archive by month, with an index of hashes. A person approves each deletion; what the person refuses
    stays, and is reported."""
    desk.write({"logs/a.log": "one", "logs/b.log": "two", "logs/new.log": "three", "logs/sub/c.log": "four"})
    for name, days in (("a", 1704067200), ("b", 1706745600)):
        os.utime(desk.work / f"logs/{name}.log", (days, days))
    assert desk.call("archive_files", folder="logs", days=30) == {
        "archived": ["logs/a.log", "logs/b.log"],
        "refused": [],
        "bytes": 6,
    }
    assert desk.questions == ["delete_file", "delete_file"]
    index = json.loads(desk.read("logs/archive/index.json"))
    assert [index[f"logs/{n}.log"]["path"] for n in "ab"] == [
        "logs/archive/2024-01/a.log",
        "logs/archive/2024-02/b.log",
    ]
    assert desk.read("logs/archive/2024-01/a.log") == "one"
    assert sorted(p.name for p in (desk.work / "logs").iterdir()) == ["archive", "new.log", "sub"]

    desk.write({"logs/d.log": "five"})
    os.utime(desk.work / "logs/d.log", (1704067200, 1704067200))
    desk.refused.add("delete_file")
    assert desk.call("archive_files", folder="logs", days=30) == {"archived": [], "refused": ["logs/d.log"], "bytes": 0}
    assert desk.read("logs/d.log") == "five"
    assert json.loads(desk.read("logs/archive/index.json")) == index
