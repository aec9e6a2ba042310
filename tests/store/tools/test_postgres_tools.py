"""What only a store of tools in PostgreSQL has: rows that others change, connections that end, writers on several machines."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.home_tables import HomeTables
from albert_tools.store.tools.postgres_tools import PostgresToolStore
from tests.helpers import versions
from tests.helpers.children import Child, Report, wait_for
from tests.helpers.postgres import server

EACH = 15
#: A change of a row of `shout`, what a load says then, and what `verify` says.
DAMAGE = {
    "UPDATE versions SET document = '{' WHERE tool = 'shout'": ("it is not JSON", "it is not JSON"),
    "UPDATE versions SET document = '[]' WHERE tool = 'shout'": ("it is not a version", "it is not a version"),
    "UPDATE versions SET document = replace(document, 'upper', 'lower') WHERE tool = 'shout'": (
        "does not match the hash",
        "does not match the hash",
    ),
    "UPDATE versions SET document = (SELECT document FROM versions WHERE tool = 'zebra') WHERE tool = 'shout'": (
        "its newest version is missing",
        "it has a version of 'zebra'",
    ),
    "DELETE FROM versions WHERE tool = 'shout'": ("its newest version is missing", "its newest version is missing"),
    "UPDATE versions SET description = 'Delete it.' WHERE tool = 'shout'": ("", "differ from its document"),
}


@pytest.fixture
def store(tables: HomeTables) -> PostgresToolStore:
    """An empty store."""
    return PostgresToolStore(tables)


@pytest.mark.parametrize("change", DAMAGE)
def test_a_changed_row_is_found_and_repaired_by_a_save(store: PostgresToolStore, change: str) -> None:
    for name in ("shout", "zebra"):
        store.save(versions.make(name))
    assert store.verify() == []
    with store._tables.transaction() as connection:
        connection.execute(change)
    at_load, found = DAMAGE[change]
    [(place, why)] = store.verify()
    assert place.endswith(", the tool shout")
    assert found in why
    if at_load:
        with pytest.raises(Failure, match=at_load) as caught:
            store.load("shout")
        assert caught.value.code == "damaged"
        with pytest.raises(Failure, match=at_load):
            store.save(versions.make("shout", "b"), versions.make("shout").version)
        assert store.save(versions.make("shout"))
        assert store.verify() == []
    assert store.load("shout") == versions.make("shout")
    assert store.load("zebra") == versions.make("zebra")


def save_versions(report: Report, url: str, who: str) -> None:
    mine = PostgresToolStore(HomeTables(url))
    report("ready")
    for i in range(EACH):
        assert mine.save(versions.make(text=f"{who}{i}"))


def test_first_saves_by_two_processes_lose_no_version() -> None:
    url = server().url()  # Nobody has created the tables.
    children = [Child(save_versions, url, who) for who in "ab"]
    assert [child.hear() for child in children] == ["ready"] * 2
    assert [child.wait() for child in children] == [0, 0]
    store = PostgresToolStore(HomeTables(url))
    for version in (versions.make(text=f"{who}{i}") for who in "ab" for i in range(EACH)):
        assert store.load("shout", version.version) == version
    assert store.list()[0].versions == 2 * EACH


def test_reading_creates_nothing() -> None:
    store = PostgresToolStore(HomeTables(server().url()))
    assert (store.list(), store.search("x"), store.history("x", 9), store.verify()) == ([], [], ([], 0), [])
    with pytest.raises(Failure, match="no tool named 'x'"):
        store.load("x")
    assert not store.has("x")


def terminate(store: PostgresToolStore) -> None:
    """End the connection, as an administrator does it."""
    connection = store._tables._link.connection
    assert connection is not None
    with closing(server().connect()) as administrator:
        administrator.execute("SELECT pg_terminate_backend(%s, 30000)", (connection.info.backend_pid,))


def test_a_lost_connection_is_made_again(store: PostgresToolStore) -> None:
    store.save(versions.make())
    uses: list[Callable[[], object]] = [store.list, lambda: store.save(versions.make(text="b"))]
    for use in uses:
        terminate(store)
        assert use()

    def lose() -> None:
        with store._tables.transaction() as connection:
            connection.execute("UPDATE tools SET deleted = true")
            terminate(store)
            connection.execute("SELECT 1")

    with pytest.raises(Failure, match="can't use the database") as caught:
        lose()
    assert caught.value.retryable
    assert store.load("shout") == versions.make(text="b")


def use_in_a_fork(_: Report, url: str) -> None:
    store = PostgresToolStore(HomeTables(url))
    store.save(versions.make("parent"))
    pid = os.fork()
    if not pid:
        code = 1
        try:
            assert store.save(versions.make("child"))
            code = 0
        finally:
            os._exit(code)
    assert wait_for(pid) == 0
    assert store.names() == ["child", "parent"]


def test_a_fork_makes_a_connection_of_its_own(home_url: str, tables: HomeTables) -> None:
    assert Child(use_in_a_fork, home_url).wait() == 0


def test_the_time_of_a_search_does_not_grow_with_the_number_of_tools(store: PostgresToolStore) -> None:
    with store._tables.transaction() as connection:
        store.save(versions.make("needle", "haystack(a)"))
        connection.execute(
            "INSERT INTO tools SELECT 't' || i, 'none', false, 't', to_tsvector('simple', 'word' || i) "
            "FROM generate_series(1, 5000) i"
        )
        connection.execute("ANALYZE tools")
        plan = connection.execute("EXPLAIN SELECT name FROM tools WHERE words @@ '''hays'':*'::tsquery").fetchall()
    assert "tools_by_word" in str(plan)
    assert [s.name for s in store.search("hays")] == ["needle"]
