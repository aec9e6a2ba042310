"""The numbered layouts of an entry on disk, and the migrations between them.

Every file has its layout's number, so a store may mix layouts: a file is migrated in memory when it is read, and on disk when
it is next written. `MIGRATIONS[n]` turns layout `n` into `n + 1`. A number above `SCHEMA` comes from a newer Albert Tools; such
a file is neither read nor replaced.

Layout 1 (now)::

    {"meta": {"1": {"schema": 1, "name": …, "head": <version>, "deleted": false, "archived": <count>}},
     "versions": {"<id>": <ToolVersion document>, …}}

Layout 0 had no "meta" table: the newest version was the one with the highest id, nothing could be deleted or
archived, and a document held its source and its lowered text each as one string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Tables = dict[str, dict[str, Any]]

SCHEMA = 1
META = "meta"
VERSIONS = "versions"


class NewerSchema(ValueError):
    """The layout of a later release."""

    def __init__(self, schema: int) -> None:
        super().__init__(f"it was written by a newer Albert Tools (layout {schema}; this one knows up to {SCHEMA})")


def schema_of_tables(tables: Tables) -> int:
    """The layout's number.

    Raises:
        ValueError: it is not a number of a layout.
    """
    if META not in tables:
        return 0
    schema = tables[META]["1"]["schema"]
    if type(schema) is not int or schema < 1:
        raise ValueError(f"{schema!r} is not a layout's number")
    return schema


def migrate_0_to_1(tables: Tables) -> Tables:
    """Texts become lists of lines; the "meta" table names the head."""
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
    """`tables` in the present layout.

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
