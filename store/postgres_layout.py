"""The tables of a home on PostgreSQL: creates them, and changes those of earlier releases.

They are in one schema. The one row of the table `gate` has the number of their layout. A process that finds an earlier layout
migrates it; one that finds a later layout writes nothing. The tables of the record are `record/schema.py`'s, the triggers
`postgres_roles.py`'s. The other tables are here.
"""

from __future__ import annotations

from contextlib import closing

import psycopg
from psycopg import sql

from albert_tools.engine.model.failure import Failure
from albert_tools.store.postgres_roles import RENEWED_TRIGGERS, TRIGGERS, create_roles, grant, login
from albert_tools.store.postgres_server import Server, failure_of
from albert_tools.store.record.gate import START
from albert_tools.store.record.schema import DEFINITIONS, QUEUES, for_postgres, postgres_tables

#: The number of the tables below, and of the record's.
LAYOUT = 8
#: The lock that keeps two processes from creating or migrating the tables at the same time.
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
#: What changes a layout into the next one, by its number. The triggers and the rights of the roles are renewed in any case.
_MIGRATIONS = {4: _TOOLS + _VALUES, 5: "", 6: for_postgres(QUEUES), 7: DEFINITIONS}


def all_tables(schema: str = "") -> str:
    """The statements that create the tables and triggers of the present layout. A temporary `schema` must be given (`pg_temp.`)."""
    return postgres_tables() + _TOOLS + _VALUES + TRIGGERS.replace("@", schema)


def find(connection: psycopg.Connection, name: str) -> bool:
    """Whether the tables exist. An earlier layout is migrated.

    Raises:
        Failure: `damaged` if the layout is not known; `permission_denied` if this user can't migrate it.
        psycopg.Error: as the server says.
    """
    if connection.execute(FIND).fetchone() is None:
        return False
    if _is_earlier(connection):
        if not login(connection).is_owner:
            problem = f"the database {name} has an earlier layout, and only the owner of its tables can migrate it"
            raise Failure(
                "permission_denied", problem, hint="have the owner run `albert fleet init`", rule="database.role"
            )
        with connection.transaction():
            _lock(connection)
            if _is_earlier(connection):
                (layout,) = connection.execute("SELECT format FROM gate FOR UPDATE").fetchone() or (0,)
                for number in range(layout, LAYOUT):
                    connection.execute(_MIGRATIONS[number], prepare=False)
                connection.execute(RENEWED_TRIGGERS, prepare=False)
                grant(connection)
                connection.execute("UPDATE gate SET format = %s", (LAYOUT,))
    check(_number(connection), name)
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


def _number(connection: psycopg.Connection) -> int | None:
    row = connection.execute("SELECT format FROM gate").fetchone()
    return None if row is None else int(row[0])


def _is_earlier(connection: psycopg.Connection) -> bool:
    number = _number(connection)
    return number is not None and min(_MIGRATIONS) <= number < LAYOUT


def _lock(connection: psycopg.Connection) -> None:
    connection.execute("SET LOCAL synchronous_commit = on")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
