"""The numbered layouts of an entry on disk, and the migrations between them.

Every file contains the number of its layout, so a store can contain files of different layouts. A file is migrated in memory when
it is read, and on disk when it is next written. `MIGRATIONS[n]` converts layout `n` to `n + 1`. A number above `SCHEMA` comes
from a newer release of Albert Tools; such a file is neither read nor replaced.

Layout 1 (now)::

    {"meta": {"1": {"schema": 1, "name": …, "head": <version>, "deleted": false, "archived": <count>}},
     "versions": {"<id>": <ToolVersion document>, …}}

Layout 0 had no "meta" table. The newest version was the one with the highest id, no version could be deleted or archived, and a
document contained its source and its lowered text each as one string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Tables = dict[str, dict[str, Any]]

SCHEMA = 1
META = "meta"
VERSIONS = "versions"


class NewerSchema(ValueError):
    """The layout comes from a later release."""

    def __init__(self, schema: int) -> None:
        super().__init__(f"it was written by a newer Albert Tools (layout {schema}; this one knows up to {SCHEMA})")


def schema_of_tables(tables: Tables) -> int:
    """The number of the layout.

    Raises:
        ValueError: the number is invalid.
    """
    if META not in tables:
        return 0
    schema = tables[META]["1"]["schema"]
    if type(schema) is not int or schema < 1:
        raise ValueError(f"{schema!r} is not a layout's number")
    return schema


def migrate_0_to_1(tables: Tables) -> Tables:
    """Convert each text to a list of lines, and add the "meta" table with the head."""
    versions = {
        key: {
            **document,
            "source": document["source"].split("\n"),
            "lowered": document["lowered"].split("\n"),
        }
        for key, document in tables[VERSIONS].items()
    }
    head = versions[max(versions, key=int)]
    meta = {"schema": 1, "name": head["name"], "head": head["version"], "deleted": False, "archived": 0}
    return {META: {"1": meta}, VERSIONS: versions}


MIGRATIONS: dict[int, Callable[[Tables], Tables]] = {0: migrate_0_to_1}


def migrate(tables: Tables) -> Tables:
    """Convert `tables` to the present layout.

    Raises:
        NewerSchema: a later release wrote them.
        ValueError, KeyError, TypeError, AttributeError: they have no known layout.
    """
    schema = schema_of_tables(tables)
    if schema > SCHEMA:
        raise NewerSchema(schema)
    for step in range(schema, SCHEMA):
        tables = MIGRATIONS[step](tables)
    return tables
