"""Tools go from a personal home to a team's and back: from a folder to a folder, and to a database with roles."""

from __future__ import annotations

import getpass
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from albert_tools import SyncToolService
from albert_tools.store.postgres_layout import initialize
from tests.helpers.postgres import server

from .conftest import Albert

INNER = '''
@example(arguments={{"x": 1}}, result={result})
def inner(x: int) -> int:
    """Add {result} minus one.

    Args:
        x: A number.
    """
    return x + {result} - 1
'''
OUTER = '''
def outer(x: int) -> int:
    """Add twice.

    Args:
        x: A number.
    """
    return tools.inner(x=tools.inner(x=x))
'''


@pytest.fixture(params=["folder", "database"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str], str]:
    """The team's home, as a person with a role reaches it."""
    if request.param == "folder":
        return lambda name, role: str(tmp_path / "team")
    url = server().url()
    initialize(url)
    return lambda name, role: server().login(url, name, role)


@pytest.fixture
def ada(tmp_path: Path) -> Albert:
    return defined(Albert(tmp_path / "ada"), INNER.format(result=2), OUTER)


def defined(machine: Albert, *sources: str) -> Albert:
    """The machine, after it has defined the sources."""
    for number, source in enumerate(sources):
        done = machine("define", machine.write(f"{number}.tool", source))
        assert done.code == 0, done
    return machine


def test_another_home_chooses_neither_what_is_imported_nor_other_folders(ada: Albert, tmp_path: Path) -> None:
    home = tmp_path / "team"
    for name in ("tools", "config", "elsewhere"):
        (home / name).mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    rules = home / "config" / "governance.yaml"
    rules.write_text("primitives_from: [this]\n")
    # The module prints when it is imported.
    done = ada("push", "inner", "--to", str(home))
    assert (done.code, "do more of those" in done.err) == (0, False)
    assert "do more of those" in ada("tools", "--home", str(home)).err
    (home / "state").rename(home / "elsewhere" / "state")
    (home / "state").symlink_to(home / "elsewhere" / "state")
    assert "state is a link" in ada("push", "inner", "--to", str(home)).err
    assert "state is a link" in ada("pull", "inner", "--from", str(home)).err


def versions(machine: Albert, *home: str) -> dict[str, str]:
    tools = machine("tools", "--json", *home).document()["tools"]
    return {tool["name"]: tool["version"] for tool in tools if tool["kind"] == "composite"}


def test_a_tool_goes_to_the_team_and_to_another_person(
    ada: Albert, team: Callable[[str, str], str], tmp_path: Path
) -> None:
    home = team("ada", "author")
    ada("review", "inner", "--approve")
    pushed = ada("push", "outer", "--to", home, "--json").document()
    assert [(each["name"], each["outcome"], each["state"]) for each in pushed["tools"]] == [
        ("inner", "saved", "pending"),
        ("outer", "saved", "pending"),
    ]
    assert versions(ada) == versions(ada, "--home", home)
    again = ada("push", "outer", env={"ALBERT_LIBRARY": home})
    assert "nothing was changed" in again.err
    assert again.out.count("is there already") == 2

    ben, boss = Albert(tmp_path / "ben"), team("boss", "reviewer")
    for name in ("inner", "outer"):
        assert ada("review", name, "--approve", "--home", boss).code == 0
    pulled = ben("pull", "outer", "--from", boss)
    assert pulled.code == 0, pulled
    assert pulled.out.count("copied, pending") == 2
    assert "shows what waits for a review here" in pulled.err
    missing = ben("pull", "outr", "--from", boss).err
    assert "error[unknown_tool]: in the home " in missing
    assert ": no tool named 'outr'; did you mean 'outer'?\n" in missing
    assert "` lists its tools" in missing
    nowhere = ben("pull", "outer", "--from", str(tmp_path / "nowhere"))
    assert (nowhere.code, "there is no home with tools at" in nowhere.err) == (1, True), nowhere
    assert not (tmp_path / "nowhere").exists()
    assert versions(ben) == versions(ada)
    assert ben("run", "outer", "x=1").out.strip() == "3"

    # Both ledgers say where it went, and where it came from.
    assert "outer was copied to" in ada("ledger", "query").out
    arrived = ada("ledger", "query", "--home", home).out
    assert f"from {ada.home}" in arrived
    assert "outer was copied to" in arrived
    if home.startswith("postgresql"):
        assert "by ada from" in arrived
        assert f"copied to {ben.home} by boss" in arrived
    assert "definition of outer" in (from_team := ben("ledger", "query").out)
    assert " from " in from_team
    for machine, words in ((ada, ("--home", boss)), (ben, ())):
        assert "the ledger is intact" in machine("ledger", "verify", *words).out


def test_a_later_version_follows_and_others_are_refused(ada: Albert, tmp_path: Path) -> None:
    team, ben = str(tmp_path / "team"), defined(Albert(tmp_path / "ben"), INNER.format(result=9))
    assert ada("push", "outer", "--to", team).code == 0
    taken = ben("push", "inner", "--to", team)
    assert taken.code == 1
    assert "the name inner is taken" in taken.err
    assert "another name" in taken.err
    assert "the name inner is taken" in ben("pull", "outer", "--from", team).err
    assert "outer" not in versions(ben)

    # The caller still calls the older version, which is there already.
    defined(ada, INNER.format(result=3))
    assert "copied" in ada("push", "inner", "--to", team).out
    assert "nothing was changed" in ada("push", "outer", "--to", team).err
    assert ada("upgrade").code == 0
    assert ada("push", "outer", "--to", team).out.count("copied") == 1
    assert versions(ada, "--home", team) == versions(ada)

    # A caller of a version that the other home lacks must not make it the newest one there.
    other = str(tmp_path / "other")
    assert ada("push", "inner", "--to", other).code == 0
    old = next(v["version"] for v in ada("show", "outer", "--json").document()["versions"] if not v["current"])
    assert "has a newer version of inner" in ada("push", "outer", "--version", old, "--to", other).err


def test_what_is_judged_otherwise_or_revoked_does_not_arrive(ada: Albert, tmp_path: Path) -> None:
    team = str(tmp_path / "team")
    assert ada("push", "nothing", "--to", team).code == 3
    assert "write `albert push NAME --to HOME`" in ada("push", "outer").err
    assert ada("push", "outer", "--to", team, env={"ALBERT_SESSION": "alb_x"}).code == 3
    assert ada("review", "inner", "--revoke", "it is wrong").code == 0
    refused = ada("push", "outer", "--to", team)
    assert refused.code == 3
    assert "inner is revoked" in refused.err
    assert versions(ada, "--home", team) == {}
    # The rules of the other home decide whether it may be there.
    (tmp_path / "strict" / "config").mkdir(parents=True)
    (tmp_path / "strict" / "config" / "governance.yaml").write_text("limits: {depth: 1}\n")
    defined(ada, INNER.format(result=4), OUTER)
    assert "depth" in ada("push", "outer", "--to", str(tmp_path / "strict")).err


# The library


def test_a_search_also_finds_what_a_library_has_approved(ada: Albert, tmp_path: Path) -> None:
    team, ben = str(tmp_path / "team"), Albert(tmp_path / "ben")
    assert ada("push", "outer", "--to", team).code == 0
    ben.environ["ALBERT_LIBRARY"] = team
    assert "inner" not in ben("search", "add").out
    assert ada("review", "inner", "--approve", "--home", team).code == 0
    found = ben("search", "add")
    assert "library\n  inner" in found.out
    assert f"active, approved by {getpass.getuser()}" in found.out
    assert "outer" not in found.out
    assert "`albert pull inner`" in found.err
    unknown = ben("run", "inner", "x=1")
    assert (unknown.code, "if the library has it, `albert pull inner` copies it" in unknown.err) == (3, True), unknown
    assert ben("pull", "inner").code == 0
    here = ben("search", "add", "--json").document()
    assert [tool["kind"] for tool in here["tools"] if tool["name"] == "inner"] == ["composite"]
    for wrong in ("postgresql:///x?host=/nowhere", "mysql://x"):
        done = ben("search", "add", env={"ALBERT_LIBRARY": wrong})
        assert done.code == 0
        assert "inner" in done.out
        assert "the tools of the library" in done.err


def test_a_library_whose_record_has_a_view_is_left_out(ada: Albert, tmp_path: Path) -> None:
    ada("review", "inner", "--approve")
    (record,) = ada.home.rglob("record.sqlite3")
    with closing(sqlite3.connect(record)) as connection:
        connection.executescript("ALTER TABLE reviews RENAME TO old; CREATE VIEW reviews AS SELECT * FROM old")
    done = Albert(tmp_path / "ben")("search", "add", env={"ALBERT_LIBRARY": str(ada.home)})
    assert (done.code, "inner" in done.out) == (0, False)
    assert "the tools of the library: Albert Tools has not made 'old' in the record" in done.err


def test_an_agent_finds_tools_of_the_library_and_can_not_pull_them(
    ada: Albert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = str(tmp_path / "team")
    assert ada("push", "inner", "--to", team).code == 0
    assert ada("review", "inner", "--approve", "--home", team).code == 0
    monkeypatch.setenv("ALBERT_LIBRARY", team)
    with SyncToolService.open(home=tmp_path / "ben", workspace=ada.project) as service:
        _, token = service.open_session("agent")
        _, narrow = service.open_session("narrow", tools=["read_file"])

        def found(session: str) -> list[dict[str, str]]:
            tools: list[dict[str, str]] = service.invoke("search_tools", {"query": "add"}, session=session).value()[
                "tools"
            ]
            return [tool for tool in tools if tool["kind"] != "primitive"]

        assert [(tool["name"], tool["kind"], tool["verdict"]) for tool in found(token)] == [
            ("inner", "library", "deny")
        ]
        assert found(narrow) == []
        error = service.invoke("run_tool", {"name": "inner", "arguments": {"x": 1}}, session=token).error
        assert error is not None
        assert error.code == "unknown_tool"
