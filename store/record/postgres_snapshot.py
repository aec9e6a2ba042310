"""Copies a record from PostgreSQL into the folder of an SQLite record.

One transaction reads all tables, so they belong together; others write meanwhile. The copy is a complete record, also for a backup.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from albert_tools.engine.model.failure import Failure
from albert_tools.store.postgres_layout import FIND, all_tables, find
from albert_tools.store.postgres_server import Server, failure_of
from albert_tools.store.record.entry import CHECKPOINT
from albert_tools.store.record.gate import START, Gate, Tail
from albert_tools.store.record.replay import Wrong
from albert_tools.store.record.schema import STATE_TABLES, TABLES, VERSION
from albert_tools.store.record.sqlite import FILE, GATE

#: Rows that are fetched at once.
_BATCH = 2000
#: The bytes of a step can be millions.
_BATCH_OF_STEPS = 20
#: What a schema contains: kind, name, and a text that defines it. It does not contain the schema's name.
_CONTENT = """
WITH space AS (
  SELECT oid, CASE oid WHEN pg_my_temp_schema() THEN 'pg_temp.' ELSE quote_ident(nspname) || '.' END AS prefix
  FROM pg_namespace WHERE oid = %(schema)s),
relation AS (SELECT pg_class.* FROM pg_class JOIN space ON relnamespace = space.oid)
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'i' THEN 'index' WHEN 'v' THEN 'view' ELSE 'relation' END, relname,
  concat(relkind, relrowsecurity, replace(pg_get_indexdef(oid), prefix, ''),
    (SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, attcollation, attgenerated,
       (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum)), ', ' ORDER BY attnum)
     FROM pg_attribute WHERE attrelid = relation.oid AND attnum > 0 AND NOT attisdropped))
FROM relation, (SELECT prefix FROM space) named
UNION ALL SELECT 'trigger', tgname, concat(tgenabled, replace(pg_get_triggerdef(oid), (SELECT prefix FROM space), ''))
FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM relation) AND NOT tgisinternal
UNION ALL SELECT 'constraint', conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = %(schema)s
UNION ALL SELECT 'rule', rulename, pg_get_ruledef(oid) FROM pg_rewrite
WHERE rulename <> '_RETURN' AND ev_class IN (SELECT oid FROM relation)
UNION ALL SELECT 'policy', polname, '' FROM pg_policy WHERE polrelid IN (SELECT oid FROM relation)
UNION ALL SELECT 'function', proname, concat(prokind, prosecdef, proconfig, prosrc) FROM pg_proc WHERE pronamespace = %(schema)s
"""


def copy(url: str, folder: Path, most: int | None = None) -> None:
    """Copy the record into the empty `folder`; nothing if it does not exist. `most` is as for `snapshot.as_folder`.

    Raises:
        Failure: `io_error`; `damaged` for the tables of another layout.
        Wrong: The tables are not the record's.
    """
    server = Server(url)
    # While rows are written to the copy, the server must not end the transaction.
    with closing(server.connect(idle_in_transaction_session_timeout="0")) as connection:
        try:
            if not find(connection, server.name):
                return
            _check_content(connection, *(connection.execute(FIND).fetchone() or (0,)))
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            tail = Tail(*(connection.execute("SELECT n, hash FROM gate").fetchone() or START))
            with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as there:
                there.executescript(
                    f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {TABLES} PRAGMA user_version={VERSION}; BEGIN"
                )
                for table in ("entries",) if most else ("entries", "steps", *STATE_TABLES):
                    _copy_table(connection, there, table, most)
                there.execute("COMMIT")
        except psycopg.Error as error:
            raise failure_of(error, server) from error
        except sqlite3.Error as error:
            hint = "free some disk space, or set TMPDIR to a folder with more of it"
            raise Failure("io_error", f"can't copy the record to {folder}: {error}", hint=hint) from error
    gate = Gate(folder / GATE)
    gate.write_last(tail)
    gate.close()


def _copy_table(connection: psycopg.Connection, there: sqlite3.Connection, table: str, most: int | None) -> None:
    columns = [name for _, name, *_ in there.execute(f"PRAGMA table_info({table})")]
    query = f"SELECT {', '.join(columns)} FROM {table}"
    if most is not None:
        query += f" WHERE n < (SELECT min(n) FROM entries) + {most} OR kind = '{CHECKPOINT}'"
    with connection.cursor("rows") as cursor:
        cursor.itersize = _BATCH_OF_STEPS if table == "steps" else _BATCH
        cursor.execute(query)
        there.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", cursor)


def _check_content(connection: psycopg.Connection, schema: int) -> None:
    """Compare the schema with what `all_tables` creates, in a transaction that is rolled back. Raises `Wrong`."""
    actual = set(connection.execute(_CONTENT, {"schema": schema}))
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL search_path = pg_temp")
        connection.execute(all_tables("pg_temp."), prepare=False)
        (own,) = connection.execute("SELECT pg_my_temp_schema()").fetchone() or (0,)
        proper = set(connection.execute(_CONTENT, {"schema": own}))
    for kind, name, _ in sorted(actual - proper):
        raise Wrong(f"the {kind} {name} does not belong to the record, or was changed")
    for kind, name, _ in sorted(proper - actual):
        raise Wrong(f"the {kind} {name} is missing")
