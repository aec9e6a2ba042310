"""Fixtures that the tests of the record share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from albert_tools.store.record.database import FILE

Tamper = Callable[..., None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a record. It does not exist yet."""
    return tmp_path / "record"


@pytest.fixture
def tamper(folder: Path) -> Tamper:
    """Return a function that executes SQL statements on the database, as an attacker would: `tamper("DELETE FROM entries")`."""

    def execute(*statements: str) -> None:
        connection = sqlite3.connect(folder / FILE)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return execute
