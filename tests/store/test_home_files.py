"""The small files of a home, in a folder and in a database, and what is kept in them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from albert_tools.engine.authority.rules_source import RulesSource
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.home_file import FolderFile, HomeFile
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.settings import MAX_BYTES, Governance
from albert_tools.store.home_tables import HomeTables
from albert_tools.store.places import Homes
from albert_tools.store.postgres_files import FRESH_SECONDS, PostgresFile, PostgresFiles
from albert_tools.store.postgres_home import PostgresHome
from albert_tools.store.record.record import Record
from tests.helpers.postgres import server


@pytest.fixture(params=["folder", "postgres"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> HomeFile:
    """A file that does not exist."""
    if request.param == "folder":
        return FolderFile(tmp_path / "config" / "x.json")
    return PostgresFile(PostgresFiles(request.getfixturevalue("tables")), "x.json")


def test_a_written_file_has_another_stamp(file: HomeFile) -> None:
    assert (file.stamp(), file.read()) == (None, None)
    stamps = []
    for content in (b"a", b"\x00\xff", b"a"):
        file.write(content)
        assert file.read() == content
        stamps.append(file.stamp())
    assert len(set(stamps)) == 3
    assert file.stamp() == stamps[-1]
    assert "x.json" in str(file)


def test_one_thread_at_a_time_is_inside(request: pytest.FixtureRequest, tmp_path: Path, home_url: str) -> None:
    request.getfixturevalue("tables")
    files = [[FolderFile(tmp_path / "n"), FolderFile(tmp_path / "n")], [another(home_url), another(home_url)]]
    for pair in files:

        def count(file: HomeFile) -> None:
            for _ in range(20):
                with file.locked():
                    file.write(b"%d" % (int(file.read() or 0) + 1))

        threads = [threading.Thread(target=count, args=(file,)) for file in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert pair[0].read() == b"40"


def another(url: str) -> PostgresFile:
    return PostgresFile(PostgresFiles(HomeTables(url)), "n")


def test_a_change_by_another_machine_is_seen_after_a_moment(tables: HomeTables, home_url: str) -> None:
    now = 0.0
    here, there = PostgresFile(PostgresFiles(tables, lambda: now), "n"), another(home_url)
    assert here.stamp() is None
    there.write(b"x")
    assert here.stamp() is None
    now = FRESH_SECONDS
    assert here.stamp() == there.stamp()


# What is kept in them


@pytest.fixture
def homes(tmp_path: Path) -> list[PostgresHome]:
    """A home in a database, as two machines see it."""
    url = server().url()
    return [PostgresHome(Homes(tmp_path / name, moved=True, url=url), Record(url)) for name in "ab"]


def test_a_mode_that_one_machine_switches_holds_on_the_other(homes: list[PostgresHome]) -> None:
    one, two = (home.modes() for home in homes)
    assert two.mode == "NORMAL"
    one.switch("LOCKDOWN", "ada", "")
    homes[1]._files.forget()
    assert (two.mode, two.state().by) == ("LOCKDOWN", "ada")
    with pytest.raises(Failure, match="can't change from LOCKDOWN to NORMAL"):
        two.switch("NORMAL", "ada", "")
    two.switch("RECOVERY", "ada", "")
    homes[0]._files.forget()
    assert one.mode == "RECOVERY"
    assert [entry.data["to"] for entry in homes[0].record.entries(["mode"])] == ["LOCKDOWN", "RECOVERY"]


def test_a_full_disk_degrades_only_its_own_machine(homes: list[PostgresHome], tmp_path: Path) -> None:
    free, now = [1.0, 1.0], [0.0]
    file, record = PostgresFile(homes[0]._files, "mode.json"), homes[0].record
    full = Modes(file, lambda: now[0], record, lambda: (free[0], free[1]), folder=tmp_path)
    other = homes[1].modes()
    full.look()
    homes[1]._files.forget()
    assert (full.mode, other.mode) == ("DEGRADED", "NORMAL")
    other.switch("ALERT", "ada", "")
    homes[0]._files.forget()
    assert full.mode == "ALERT"
    other.switch("NORMAL", "ada", "")
    homes[0]._files.forget()
    now[0] += 11
    full.look()
    assert full.mode == "DEGRADED"
    free[0], now[0] = 1e6, now[0] + 11
    full.look()
    assert full.mode == "NORMAL"


def test_the_rules_in_a_database(homes: list[PostgresHome]) -> None:
    rules, record = homes[0].rules, homes[0].record
    source = RulesSource(rules, None, ledger=record)
    assert source.current() == Governance()
    rules.write(b"deny: [bash]")
    found = source.current()
    assert isinstance(found, Governance)
    assert found.deny == {"bash"}
    for wrong, why in ((b"deny: 1", "deny"), (b"\xff\xfe\xff", "it is not YAML"), (b"#" * (MAX_BYTES + 1), "larger")):
        rules.write(wrong)
        assert source.current() == found
        assert why in str(source.problem)
        assert str(rules) in str(source.problem)
    with homes[0]._tables.transaction() as connection:
        connection.execute("DELETE FROM files")
    homes[0]._files.forget()
    assert source.current() == found
    assert "is gone; its rules stay in force" in str(source.problem)


def test_after_an_outage_the_mode_and_the_rules_are_what_they_were(homes: list[PostgresHome]) -> None:
    modes, source = homes[0].modes(), RulesSource(homes[0].rules, None)
    assert (modes.mode, source.current()) == ("NORMAL", Governance())
    homes[1].rules.write(b"deny: [bash]")
    server().stop()
    homes[0]._files.forget()
    assert (modes.mode, source.current()) == ("LOCKDOWN", Governance())
    server().start()
    homes[0]._files.forget()
    assert modes.mode == "NORMAL"
    found = source.current()
    assert isinstance(found, Governance)
    assert found.deny == {"bash"}


def test_without_a_server_nothing_is_allowed(tmp_path: Path) -> None:
    url = "postgresql://u:secret@/x?host=/nowhere"
    home = PostgresHome(Homes(tmp_path, moved=True, url=url), Record(url))
    state = home.modes().state()
    assert state.mode == "LOCKDOWN"
    assert "check" not in state.cause
    assert "secret" not in state.cause
    found = RulesSource(home.rules, None).current()
    assert isinstance(found, Failure)
    assert "secret" not in found.message
