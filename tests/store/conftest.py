"""Fixtures that the tests of the store share: tools, and stores that save them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.store.home_tables import HomeTables
from albert_tools.store.tools.postgres_tools import PostgresToolStore
from albert_tools.store.tools.stored_tools import StoredTools
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers import versions
from tests.helpers.postgres import server

MakeVersion = Callable[..., ToolVersion]


@pytest.fixture(scope="session")
def make() -> MakeVersion:
    """Return a function that makes versions: `make(name, text, description)`. A different text makes a different version."""
    return versions.make


@pytest.fixture(params=["files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StoredTools:
    """An empty store: in files with a cache, or with `on_both` also in a database."""
    if request.param == "files":
        return TinyToolStore(tmp_path / "tools", tmp_path / "cache")
    return PostgresToolStore(request.getfixturevalue("tables"))


#: For a test that both stores pass.
on_both = pytest.mark.parametrize("store", ["files", "postgres"], indirect=True)


def another(store: StoredTools) -> StoredTools:
    """The same tools, as another process sees them."""
    if isinstance(store, TinyToolStore):
        return TinyToolStore(store.folder)
    assert isinstance(store, PostgresToolStore)
    return PostgresToolStore(store._tables)


@pytest.fixture
def settle_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust each time of change at once, as after some seconds."""
    monkeypatch.setattr("albert_tools.store.tools.entry.SETTLING", 1)
    monkeypatch.setattr("albert_tools.store.tools.entry.SETTLING_FRACTIONS", 1)


@pytest.fixture(scope="session")
def home_url() -> str:
    """The URL of a home on PostgreSQL."""
    return server().url()


@pytest.fixture(scope="session")
def created_tables(home_url: str) -> HomeTables:
    """Its tables."""
    tables = HomeTables(home_url)
    with tables.transaction():
        pass
    return tables


@pytest.fixture
def tables(created_tables: HomeTables) -> HomeTables:
    """The same, empty."""
    empty(created_tables)
    return created_tables


def empty(tables: HomeTables) -> None:
    """Delete all rows."""
    with tables.transaction() as connection:
        connection.execute("TRUNCATE tools, versions, calls, contents, artifacts, files")
