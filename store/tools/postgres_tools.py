"""The tool store in PostgreSQL: a row for each tool, and one for each of its versions.

A list shows columns that were written with the version. They are not verified; what is loaded is, and `verify` compares both.
"""

from __future__ import annotations

import builtins
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from albert_tools.engine.model.definition import ToolVersion
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import look_key
from albert_tools.engine.model.primitive import NAME
from albert_tools.engine.model.protocols import Saved, Summary
from albert_tools.store.home_tables import HomeTables
from albert_tools.store.tools.entry import META, VERSIONS, Damaged, Entry, prove
from albert_tools.store.tools.search_words import MAX_WORDS, containing, folded_words, name_words, words_of
from albert_tools.store.tools.stored_tools import CACHED, StoredTools, newest_of, renewed

_COUNT = "(SELECT count(*) FROM versions WHERE tool = name)"
_ENTRY = (
    f"SELECT head, deleted, {_COUNT}, document FROM tools "
    "LEFT JOIN versions ON tool = name AND version = coalesce(%s, head) WHERE name = %s"
)
_SUMMARIES = (
    f"SELECT name, head, description, created, {_COUNT}, NULL, author "
    "FROM tools JOIN versions ON tool = name AND version = head WHERE NOT deleted"
)
# Only one process at a time changes a tool, so that its first two versions are not saved at the same time.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_ADD = """
INSERT INTO versions SELECT %s, %s, coalesce(max(n), 0) + 1, %s, %s, %s, %s FROM versions WHERE tool = %s
ON CONFLICT (tool, version) DO UPDATE SET n = EXCLUDED.n, created = EXCLUDED.created, author = EXCLUDED.author,
description = EXCLUDED.description, document = EXCLUDED.document
"""
_HEAD = """
INSERT INTO tools VALUES (%s, %s, false, %s, %s::tsvector)
ON CONFLICT (name) DO UPDATE SET head = EXCLUDED.head, deleted = false, words = EXCLUDED.words
"""
#: What a match in a source, a description and a name is worth: the weights D (not used), C, B and A.
_MATCHING = "AND words @@ %s::tsquery ORDER BY ts_rank('{0, 0.1, 0.4, 1}', words, %s::tsquery) DESC, name LIMIT %s"
#: PostgreSQL's limits of a tsvector: the greatest position, and the most positions of one word.
_MAX_POSITION, _MAX_POSITIONS = 16_383, 255


class PostgresToolStore(StoredTools):
    """The tools in a database."""

    def __init__(self, tables: HomeTables) -> None:
        self._tables = tables
        self._loaded: dict[tuple[str, str], ToolVersion] = {}

    # Reading

    def _newest(self, name: str) -> ToolVersion:
        for head, deleted in self._tables.rows("SELECT head, deleted FROM tools WHERE name = %s", (name,)):
            if not deleted and (name, head) in self._loaded:
                return self._loaded[name, head]
        try:
            entry = self._entry(name)
            if entry is None:
                raise self._unknown(name)
            return self._keep(newest_of(name, entry))
        except Damaged as error:
            raise self._damaged(name, error) from error

    def _version(self, name: str, version: str) -> ToolVersion:
        if (name, version) in self._loaded:
            return self._loaded[name, version]
        try:
            entry = self._entry_with(name, version)
            loaded = entry.version(version) if entry is not None else None
        except Damaged as error:
            raise self._damaged(name, error) from error
        if loaded is None:
            raise self._no_version(name, version)
        return self._keep(loaded)

    def _keep(self, version: ToolVersion) -> ToolVersion:
        """Cache a verified version. Only its manifest can change, and one by an earlier analysis is made again at its next use."""
        if len(self._loaded) >= CACHED:
            self._loaded = {}
        self._loaded[version.name, version.version] = version
        return version

    def _hashes(self, name: str) -> Iterable[str]:
        return (version for (version,) in self._tables.rows("SELECT version FROM versions WHERE tool = %s", (name,)))

    def has(self, name: str) -> bool:
        """See `ToolStore`."""
        return NAME.match(name) is not None and bool(self._tables.rows("SELECT 1 FROM tools WHERE name = %s", (name,)))

    def list(self) -> builtins.list[Summary]:
        """See `ToolStore`."""
        return self._summaries("ORDER BY name")

    def page(self, after: str, limit: int) -> builtins.list[Summary]:
        """See `ToolStore`."""
        return self._summaries("AND name > %s ORDER BY name LIMIT %s", after, limit)

    def names(self) -> builtins.list[str]:
        """See `ToolStore`."""
        return [name for (name,) in self._tables.rows("SELECT name FROM tools WHERE NOT deleted ORDER BY name")]

    def alike(self, name: str) -> builtins.list[str]:
        """See `ToolStore`."""
        query = "SELECT name FROM tools WHERE look = %s AND NOT deleted ORDER BY name"
        return [name for (name,) in self._tables.rows(query, (look_key(name),))]

    def callers(self, name: str) -> builtins.list[tuple[str, str]]:
        """See `ToolStore`."""
        query = "SELECT caller, version FROM calls WHERE callee = %s ORDER BY caller"
        return [(caller, version) for caller, version in self._tables.rows(query, (name,))]

    def history(self, name: str, limit: int) -> tuple[builtins.list[Saved], int]:
        """See `ToolStore`. Raises Failure `io_error`."""
        if not NAME.match(name):
            return [], 0
        query = (
            "SELECT version, created, NOT deleted AND version = head, author, count(*) OVER () "
            "FROM versions JOIN tools ON name = tool WHERE tool = %s ORDER BY n DESC LIMIT %s"
        )
        rows = self._tables.rows(query, (name, max(limit, 1)))
        return [Saved(*row[:4]) for row in rows[:limit]], rows[0][4] if rows else 0

    def search(self, text: str, limit: int = 20, any_word: bool = False) -> builtins.list[Summary]:
        """See `ToolStore`. A word counts more in a name than in a description, and there more than in a source; how rare it is
        does not count.
        """
        if limit <= 0 or not text.strip():
            return self.page("", max(0, limit))
        words = folded_words(text)[:MAX_WORDS]
        if not words:
            return []
        for operator in ("|",) if any_word else ("&", "|"):
            query = f" {operator} ".join(f"'{word}':*" for word in words)
            summaries = self._summaries(_MATCHING, query, query, limit)
            if summaries:
                return summaries
        return containing(((summary, "") for summary in self.list()), words_of(text)[:MAX_WORDS], limit)

    def _summaries(self, rest: str, *values: Any) -> builtins.list[Summary]:
        return [Summary(*row) for row in self._tables.rows(f"{_SUMMARIES} {rest}", values)]

    def verify(self) -> builtins.list[tuple[str, str]]:
        """See `StoredTools`. The places are rows."""
        damaged = [
            (self._place(name), "its newest version is missing")
            for (name,) in self._tables.rows(
                "SELECT name FROM tools LEFT JOIN versions ON tool = name AND version = head WHERE version IS NULL"
            )
        ]
        last = ("", "")
        query = (
            "SELECT tool, version, document, created, author, description FROM versions WHERE (tool, version) > (%s, %s) "
            "ORDER BY tool, version LIMIT 100"
        )
        while rows := self._tables.rows(query, last):
            for name, version, document, *columns in rows:
                try:
                    stored = prove(_decoded(document), name)
                    if stored.version != version or columns != _columns(stored):
                        damaged.append(
                            (self._place(name), f"the columns of version {version} differ from its document")
                        )
                except Damaged as error:
                    damaged.append((self._place(name), str(error)))
            last = rows[-1][:2]
        return damaged

    def close(self) -> None:
        """See `StoredTools`."""
        self._tables.close()

    # Writing

    @contextmanager
    def _changing(self, name: str, action: str) -> Iterator[None]:
        with self._tables.transaction() as connection:
            connection.execute(_LOCK, (name,))
            yield

    def _entry(self, name: str) -> Entry | None:
        return self._entry_with(name, None)

    def _entry_with(self, name: str, version: str | None) -> Entry | None:
        """The entry with one version: this one, or the newest."""
        for head, deleted, count, document in self._tables.rows(_ENTRY, (version, name)):
            versions = {} if document is None else {"1": _decoded(document)}
            meta = {"name": name, "head": head, "deleted": deleted, "archived": count - len(versions)}
            return Entry({META: {"1": meta}, VERSIONS: versions}, (0, 0, 0, 0), False)
        return None

    def _confirm(self, name: str) -> None:
        pass

    def _add(self, name: str, entry: Entry | None, document: dict[str, Any]) -> None:
        version = prove(document, name)
        with_text = json.dumps(document, ensure_ascii=False)
        with self._tables.transaction() as connection:
            self._loaded.pop((name, version.version), None)
            connection.execute(_ADD, (name, version.version, *_columns(version), with_text, name))
            connection.execute(_HEAD, (name, version.version, look_key(name), _vector(version)))
            connection.execute("DELETE FROM calls WHERE caller = %s", (name,))
            for callee in {(c.name, c.version) for c in version.calls if c.kind == "composite"}:
                connection.execute("INSERT INTO calls VALUES (%s, %s, %s)", (callee[0], name, callee[1]))

    def _repair(self, name: str, entry: Entry | None, document: dict[str, Any]) -> None:
        self._add(name, entry, document)

    def _renew(self, name: str, document: dict[str, Any]) -> bool:
        version = document["version"]
        entry = self._entry_with(name, version)
        if entry is None or not entry.tables[VERSIONS]:
            return False
        text = json.dumps(renewed(entry.tables[VERSIONS]["1"], document), ensure_ascii=False)
        statement = "UPDATE versions SET document = %s WHERE tool = %s AND version = %s"
        with self._tables.transaction() as connection:
            connection.execute(statement, (text, name, version))
        self._loaded.pop((name, version), None)
        return True

    def _mark_deleted(self, name: str, entry: Entry) -> None:
        with self._tables.transaction() as connection:
            connection.execute("UPDATE tools SET deleted = true, words = '' WHERE name = %s", (name,))
            connection.execute("DELETE FROM calls WHERE caller = %s", (name,))

    def _place(self, name: str) -> str:
        return f"{self._tables.name}, the tool {name}"

    def _damaged(self, name: str, error: Damaged) -> Failure:
        return Failure(
            "damaged",
            f"the entry of the tool {name!r} can't be used: {error}",
            hint="save the tool again",
            tool=name,
            details={"path": self._place(name)},
        )


def _decoded(document: str) -> dict[str, Any]:
    try:
        decoded = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"it is not JSON ({error})") from error
    if not isinstance(decoded, dict) or "version" not in decoded:
        raise Damaged("it is not a version")
    return decoded


def _columns(version: ToolVersion) -> builtins.list[str]:
    """What lists show: when and by whom a version was saved, and its description."""
    # PostgreSQL has no text with NUL.
    return [version.created, version.author, version.definition.description.replace("\0", "")]


def _vector(version: ToolVersion) -> str:
    """The words of a version, each with its positions and the weights of the texts that contain it."""
    places = defaultdict[str, list[str]](list)
    texts = {"A": name_words(version.name), "B": version.definition.description, "C": version.source}
    words = ((word, weight) for weight, text in texts.items() for word in folded_words(text))
    for position, (word, weight) in enumerate(words, 1):
        if len(places[word]) < _MAX_POSITIONS:
            places[word].append(f"{min(position, _MAX_POSITION)}{weight}")
    return " ".join(f"'{word}':{','.join(occurrences)}" for word, occurrences in places.items())
