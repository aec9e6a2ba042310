"""Changes of a home's record by a program that can write to the database, and knows nothing of the entries."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def altered(home: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Execute a statement on the record of `home`. Returns its rows."""
    path = home / "state" / "record" / "record.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()
