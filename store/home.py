"""What a home stores, in its folder or in its database. The parts are made at their first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from albert_tools.engine.model.home_file import FolderFile, HomeFile
from albert_tools.store.places import MODE, MOUNTS, RULES, Homes
from albert_tools.store.record.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from albert_tools.engine.policy.modes import Modes
    from albert_tools.store.artifacts import StoredArtifacts
    from albert_tools.store.contents.stored_contents import StoredContents
    from albert_tools.store.postgres_home import PostgresHome
    from albert_tools.store.tools.stored_tools import StoredTools


class FolderHome:
    """The home in a folder."""

    def __init__(self, local: Homes) -> None:
        self.local = local

    @cached_property
    def record(self) -> Record:
        """The record."""
        return Record(self.local.state / "record")

    @cached_property
    def tools(self) -> StoredTools:
        """The saved tools."""
        from albert_tools.store.tools.tool_store import TinyToolStore

        return TinyToolStore(self.local.tools, lambda: self.local.cache)

    @cached_property
    def contents(self) -> StoredContents:
        """The values by hash."""
        from albert_tools.store.contents.content_store import Contents

        return Contents(self.local.state / "contents")

    @cached_property
    def artifacts(self) -> StoredArtifacts:
        """The artifacts."""
        from albert_tools.store.artifacts import Artifacts

        return Artifacts(self.local.state / "artifacts", self.contents)

    @property
    def rules(self) -> Path:
        """The owner's rules."""
        return self.local.config / RULES

    @property
    def mounts(self) -> HomeFile:
        """The mounted servers."""
        return FolderFile(self.local.config / MOUNTS)

    def modes(self) -> Modes:
        """The mode."""
        from albert_tools.engine.policy.modes import Modes

        return Modes(self.local.state / MODE, ledger=self.record)


#: What a home stores, in a folder or in a database. Its parts raise Failure when they are used, not when they are made.
Home: TypeAlias = "FolderHome | PostgresHome"


def home_at(local: Homes) -> Home:
    """The home of these folders, or of their URL. Raises Failure `invalid_arguments` for a bad URL, `not_found` without psycopg."""
    if not local.url:
        return FolderHome(local)
    record = Record(local.url)  # It reports a missing psycopg.
    from albert_tools.store.postgres_home import PostgresHome

    return PostgresHome(local, record)
