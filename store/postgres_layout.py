"""The tables of a home on PostgreSQL, and their creation.

They are in one schema. The one row of the table `gate` has the number of their layout. Another layout is refused. The tables of the
record are `record/schema.py`'s, the triggers `postgres_roles.py`'s. The other tables are here.
"""

from __future__ import annotations

from contextlib import closing

import psycopg
from psycopg import sql

from albert_tools.engine.model.failure import Failure
from albert_tools.store.postgres_roles import TRIGGERS, create_roles
from albert_tools.store.postgres_server import Server, failure_of
from albert_tools.store.record.gate import START
from albert_tools.store.record.schema import postgres_tables

#: The number of the tables below, and of the record's.
LAYOUT = 10
#: The lock that keeps two processes from creating the tables at the same time.
_CREATING = 0x416C62657274
#: The schema of the tables, if they exist. `to_regclass` can miss a table that another process has just created.
FIND = (
    "SELECT space.oid FROM pg_namespace space JOIN pg_class ON relnamespace = space.oid "
    "WHERE nspname = current_setting('search_path') AND relname = 'gate'"
)
#: `words` has each word of a tool once, with the weight of the text that has it: A for its name, B for its description, C for its
#: source. `n` of a version has the order of saving.
_TOOLS = """
CREATE TABLE tools(
  name TEXT COLLATE "C" PRIMARY KEY, head TEXT COLLATE "C" NOT NULL, deleted BOOLEAN NOT NULL, look TEXT COLLATE "C" NOT NULL,
  words TSVECTOR NOT NULL);
CREATE INDEX tools_by_look ON tools(look);
CREATE INDEX tools_by_word ON tools USING gin(words);
CREATE TABLE versions(
  tool TEXT COLLATE "C" NOT NULL, version TEXT COLLATE "C" NOT NULL, n BIGINT NOT NULL, created TEXT NOT NULL, author TEXT NOT NULL,
  description TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY(tool, version));
CREATE TABLE calls(
  callee TEXT COLLATE "C" NOT NULL, caller TEXT COLLATE "C" NOT NULL, version TEXT NOT NULL, PRIMARY KEY(callee, caller, version));
CREATE INDEX calls_by_caller ON calls(caller);
"""
#: A content is stored uncompressed, so that a part of it can be read without the rest.
_VALUES = """
CREATE TABLE contents(ref TEXT COLLATE "C" PRIMARY KEY, stored TIMESTAMPTZ NOT NULL, content BYTEA NOT NULL);
ALTER TABLE contents ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE TABLE artifacts(name TEXT COLLATE "C" PRIMARY KEY, record BYTEA NOT NULL);
CREATE TABLE files(name TEXT COLLATE "C" PRIMARY KEY, content BYTEA NOT NULL, changed BIGINT NOT NULL);
"""


def all_tables(schema: str = "") -> str:
    """The statements that create the tables and triggers of the present layout. A temporary `schema` must be given (`pg_temp.`)."""
    return postgres_tables() + _TOOLS + _VALUES + TRIGGERS.replace("@", schema)


def find(connection: psycopg.Connection, name: str) -> bool:
    """Whether the tables exist.

    Raises:
        Failure: `damaged` if they have another layout.
        psycopg.Error: as the server says.
    """
    if connection.execute(FIND).fetchone() is None:
        return False
    (layout,) = connection.execute("SELECT format FROM gate").fetchone() or (None,)
    check(layout, name)
    return True


def create(connection: psycopg.Connection, name: str) -> None:
    """Create the tables, unless another process has. Raises as `find`."""
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise Failure(
            "io_error", f"the database {name} has another encoding than UTF8", hint="use a database with UTF8"
        )
    with connection.transaction():
        _lock(connection)
        if find(connection, name):
            return
        (schema,) = connection.execute("SELECT current_setting('search_path')").fetchone() or ("",)
        if connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() == (None,):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(all_tables(), prepare=False)
        connection.execute("INSERT INTO gate VALUES (%s, 0, %s)", (LAYOUT, START.hash))


def initialize(url: str) -> dict[str, str]:
    """Create the tables, and the roles that may use them, unless they exist. Triggers and rights are made anew.

    Returns the names of the roles by `ROLES`.

    Raises:
        Failure: `permission_denied` if the user may not do this; those of `find` and `create_roles`; `io_error`.
    """
    server = Server(url)
    with closing(server.connect()) as connection:
        try:
            create(connection, server.name)
            with connection.transaction():
                _lock(connection)
                # Who writes has this lock before those of other tables.
                connection.execute("SELECT FROM gate FOR UPDATE")
                return create_roles(connection)
        except psycopg.Error as error:
            raise failure_of(error, server) from error


def check(layout: int | None, name: str) -> None:
    """Raises Failure `damaged` if the tables have another layout than this release writes."""
    if layout is None:
        raise damaged(f"the record {name} has lost the row of its gate", name)
    if layout != LAYOUT:
        problem = f"the database {name} has layout {layout}, and this version of Albert Tools reads {LAYOUT}"
        hint = "use the version that wrote it, or another database or schema"
        raise Failure("damaged", problem, hint=hint)


def damaged(problem: str, name: str, **details: object) -> Failure:
    """The failure of a database that is not what this home has written."""
    hint = "keep the database unchanged and examine it; to begin a new record, use another database or schema"
    return Failure("damaged", problem, hint=hint, details={"path": name, **details})


def _lock(connection: psycopg.Connection) -> None:
    connection.execute("SET LOCAL synchronous_commit = on")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
