"""Fixtures that the tests of the record share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from albert_tools.store.record.sqlite import FILE
from tests.helpers.postgres import server

Place = Path | str
Tamper = Callable[..., None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a record on SQLite. It does not exist yet."""
    return tmp_path / "record"


@pytest.fixture
def url() -> str:
    """The URL of a record on PostgreSQL. It does not exist yet."""
    return server().url()


@pytest.fixture(params=["folder", "url"])
def place(request: pytest.FixtureRequest) -> Place:
    """The place of a record on each database."""
    found: Place = request.getfixturevalue(request.param)
    return found


#: For a test that attacks files or speaks SQLite's own SQL.
on_sqlite = pytest.mark.parametrize("place", ["folder"], indirect=True)


def another(place: Place) -> Place:
    """The place of a record that does not exist, on the same database."""
    return server().url() if isinstance(place, str) else place.parent / "another"


def change(place: Place, statement: str, values: Sequence[Any] = ()) -> None:
    """Execute a statement as a program that knows nothing of the record."""
    if isinstance(place, str):
        with closing(server().connect(place)) as connection:
            connection.execute(statement.replace("?", "%s"), values)
    else:
        with closing(sqlite3.connect(place / FILE, isolation_level=None)) as file:
            file.execute(statement, values)


@pytest.fixture
def tamper(request: pytest.FixtureRequest) -> Tamper:
    """Return a function that executes SQL statements on the database, as an attacker would: `tamper("DELETE FROM entries")`."""
    place: Place = request.getfixturevalue("place" if "place" in request.fixturenames else "folder")

    def execute(*statements: str) -> None:
        for statement in statements:
            change(place, statement)

    return execute
