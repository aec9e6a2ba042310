"""A home in PostgreSQL. Machines share all of it but the local folders, with the locks on files that calls change."""

from __future__ import annotations

from functools import cached_property

from albert_tools.engine.model.home_file import HomeFile
from albert_tools.engine.policy.modes import Modes
from albert_tools.store.artifacts import StoredArtifacts
from albert_tools.store.contents.postgres_contents import PostgresContents
from albert_tools.store.contents.stored_contents import StoredContents
from albert_tools.store.home_tables import HomeTables
from albert_tools.store.places import MODE, MOUNTS, RULES, Homes
from albert_tools.store.postgres_artifacts import PostgresArtifacts
from albert_tools.store.postgres_files import PostgresFile, PostgresFiles
from albert_tools.store.record.record import Record
from albert_tools.store.tools.postgres_tools import PostgresToolStore
from albert_tools.store.tools.stored_tools import StoredTools


class PostgresHome:
    """As `FolderHome`, in PostgreSQL. The record has a connection of its own, and the other parts share one."""

    def __init__(self, local: Homes, record: Record) -> None:
        self.local, self.record = local, record
        self._tables = HomeTables(local.url)
        self._files = PostgresFiles(self._tables)

    @cached_property
    def tools(self) -> StoredTools:
        """See `FolderHome`."""
        return PostgresToolStore(self._tables)

    @cached_property
    def contents(self) -> StoredContents:
        """See `FolderHome`."""
        return PostgresContents(self._tables)

    @cached_property
    def artifacts(self) -> StoredArtifacts:
        """See `FolderHome`."""
        return PostgresArtifacts(self._tables, self.contents)

    @property
    def rules(self) -> HomeFile:
        """See `FolderHome`."""
        return PostgresFile(self._files, RULES)

    @property
    def mounts(self) -> HomeFile:
        """See `FolderHome`."""
        return PostgresFile(self._files, MOUNTS)

    def modes(self) -> Modes:
        """See `FolderHome`."""
        return Modes(PostgresFile(self._files, MODE), ledger=self.record, folder=self.local.state)
