"""The table `activations`: which saved tools are active, each in one version. An empty version means that it no longer is."""

from __future__ import annotations

from albert_tools.engine.model.record_types import Entry
from albert_tools.store.record.apply import Execute
from albert_tools.store.record.database import Database

_DROP = "DELETE FROM activations WHERE tool = ?"
_INSERT = "INSERT INTO activations(tool, version, n) VALUES (?, ?, ?)"


def activated(execute: Execute, entry: Entry) -> None:
    """Apply an entry of kind ``activation``."""
    execute(_DROP, (entry.data["tool"],))
    execute(_INSERT, (entry.data["tool"], entry.data["version"], entry.n))


class ActivationTable:
    """The queries of `engine.model.protocols.ActivationTable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, str]:
        """See the protocol."""
        return dict(self._database.rows("SELECT tool, version FROM activations WHERE version <> '' ORDER BY tool"))

    def changed(self) -> int:
        """See the protocol."""
        found = self._database.row("SELECT max(n) FROM activations")
        return (found[0] if found is not None else None) or 0
