"""The table `reviews`: the state of each saved version about which somebody has decided. A version without a row is pending."""

from __future__ import annotations

from albert_tools.engine.model.record_types import Entry, ReviewRow
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database
from albert_tools.store.record.entry import decode
from albert_tools.store.record.query_cache import QueryCache

_REPLACE = (
    "UPDATE reviews SET state = 'deprecated', why = ?, reviewer = ?, at = ?, n = ? WHERE tool = ? AND state = 'active'"
)
_SET = """
INSERT INTO reviews(tool, version, state, reviewer, why, at, manifest, n) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(tool, version) DO UPDATE SET state = excluded.state, reviewer = excluded.reviewer, why = excluded.why,
  at = excluded.at, manifest = excluded.manifest, n = excluded.n
"""
_PROPOSE = """
UPDATE reviews SET state = 'pending', why = '', reviewer = ?, at = ?, manifest = ''
WHERE tool = ? AND version = ? AND state = 'deprecated'
"""
_READ = "SELECT tool, version, state, reviewer, why, at, manifest FROM reviews"
_ONE = f"{_READ} WHERE tool = ? AND version = ?"

#: It has an index of its own, see `schema.postgres_tables`.
_DEFINITIONS = "SELECT data FROM entries WHERE kind = 'definition' AND data LIKE ? ORDER BY n"


def decided(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``review``. At most one version of a tool is active."""
    data = entry.data
    tool, version, by = data["tool"], data["version"], data["by"]
    if data["state"] == "active":
        execute(_REPLACE, (f"replaced by {version}", by, entry.at, entry.n, tool))
    execute(_SET, (tool, version, data["state"], by, data["why"], entry.at, data["manifest"], entry.n))


def defined(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``definition``: a deprecated version that is defined again is pending again."""
    data = entry.data
    execute(_PROPOSE, (data.get("by", ""), entry.at, data["tool"], data["version"]))


class ReviewTable:
    """The queries of `engine.model.protocols.ReviewTable`."""

    def __init__(self, database: Database, cache: QueryCache) -> None:
        self._database = database
        self._cache = cache

    def get(self, tool: str, version: str) -> ReviewRow | None:
        """See the protocol."""
        row = self._cache.get((_ONE, tool, version), lambda: self._database.row(_ONE, (tool, version)))
        return None if row is None else ReviewRow(*row)

    def all(self) -> list[ReviewRow]:
        """See the protocol."""
        return [ReviewRow(*row) for row in self._database.rows(f"{_READ} ORDER BY tool, n")]

    def of_tool(self, tool: str) -> list[ReviewRow]:
        """See the protocol."""
        return [ReviewRow(*row) for row in self._database.rows(f"{_READ} WHERE tool = ? ORDER BY n DESC", (tool,))]

    def active(self) -> dict[str, str]:
        """See the protocol."""
        return dict(self._database.rows("SELECT tool, version FROM reviews WHERE state = 'active' ORDER BY tool"))

    def definers(self, tool: str) -> dict[str, str]:
        """See the protocol."""
        if not self._database.names_users:
            return {}
        rows = self._database.rows(_DEFINITIONS, (f'%"tool":"{tool}"%',))
        definitions = (decode(data) for (data,) in rows)
        return {each["version"]: each["user"] for each in definitions if each["tool"] == tool and each.get("user")}

    def changed(self) -> int:
        """See the protocol."""
        row = self._database.row("SELECT max(n) FROM reviews")
        return (row[0] if row is not None else None) or 0
