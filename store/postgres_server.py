"""The server of a home on PostgreSQL: how to connect and connect again, and what its errors mean for the user."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from albert_tools.engine.model.failure import Failure
from albert_tools.store.postgres_roles import GRANTS, a_role
from albert_tools.store.record import gate

#: The schema of the tables. Another one can be given in the URL: `?options=-csearch_path%3DNAME`.
SCHEMA = "albert"
#: Without this, a process and the server would wait for hours for each other when one's machine, or the network, has gone.
_NETWORK = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
#: The server's settings for the same → the parameters of a URL.
_AT_THE_SERVER = {
    "tcp_keepalives_idle": "keepalives_idle",
    "tcp_keepalives_interval": "keepalives_interval",
    "tcp_keepalives_count": "keepalives_count",
    "tcp_user_timeout": "tcp_user_timeout",
}
_GRANT = "have an administrator grant this user a role of the home, which `albert fleet init` creates"
#: Reasons why a server refuses a connection → what the user can do.
_REFUSALS = {
    "no password supplied": "give the password of this user in ~/.pgpass or in PGPASSWORD",
    "password authentication failed": "give the password of this user in ~/.pgpass or in PGPASSWORD",
    "database .* does not exist": "create it, or correct its name in the URL",
}
#: The first characters of a state (SQLSTATE) → what the user can do.
_HINTS = {
    "25006": "give the URL of the primary server: this one can only be read",
    "25P03": "try again: this process has stood still inside a transaction, so the server has ended its connection",
    "53100": "free some space on the server's disk and try again",
    "53300": "try again later, or let the server accept more connections (max_connections)",
    "57P": "try again when the server runs: an administrator or a crash has ended the connection",
}
_UNREACHABLE = "check the host, port, user, password and database of the URL, and that the server runs"
_SEARCH_PATH = re.compile(r"search_path=(\S+)")
#: States in which the server ends the connection.
_LOST = ("08", "25P03", "57P")

_T = TypeVar("_T")


class Server:
    """The server and database of a URL, as libpq reads it. `name` is for messages and has no password."""

    def __init__(self, url: str) -> None:
        """Raises Failure `invalid_arguments`."""
        try:
            self._given = conninfo_to_dict(url)
        except psycopg.Error:  # Its message could contain the password.
            raise _unreadable() from None
        host, port, user, database = (self._given.get(key) or "" for key in ("host", "port", "user", "dbname"))
        if "@" in f"{host}{database}":  # A part of a password that is not escaped.
            raise _unreadable()
        self.name = f"postgresql://{f'{user}@' if user else ''}{host}{f':{port}' if port else ''}/{database}"
        #: The user and the database of the connections, once there is one.
        self.user, self.database = str(user), str(database)

    def connect(self, **settings: str) -> psycopg.Connection:
        """A new connection with these settings of the server. Raises Failure `io_error`."""
        network = {**_NETWORK, **self._given}
        own = {
            "search_path": SCHEMA,
            # The server notices a lost process as soon as a process notices a lost server.
            **{setting: network[name] for setting, name in _AT_THE_SERVER.items()},
            "lock_timeout": f"{gate.PATIENCE}s",
            # Shorter, so that those who wait go on after the server has ended the transaction of a stopped process.
            "idle_in_transaction_session_timeout": f"{gate.PATIENCE * 0.6}s",
            **settings,
        }
        options = [f"-c {name}={value}" for name, value in own.items()] + [str(self._given.get("options", ""))]
        fixed = {"client_encoding": "utf8", "options": " ".join(options)}
        arguments = {"application_name": "albert", **network, **fixed}
        try:
            made = psycopg.connect(**cast(dict[str, Any], arguments), autocommit=True, prepare_threshold=2)
        except psycopg.Error as error:
            raise failure_of(error, self) from error
        self.user, self.database = made.info.user, made.info.dbname
        return made

    def role(self, role: str) -> str:
        """The name of a role of this home."""
        schema = [SCHEMA, *_SEARCH_PATH.findall(str(self._given.get("options", "")))][-1]
        return f"{self.database}{'' if schema == SCHEMA else f'.{schema}'}_{role}"


def _unreadable() -> Failure:
    return Failure(
        "invalid_arguments",
        "the URL of the database can't be read",
        hint="write it like postgresql://user@host:5432/database; in a password, write @ as %40 and / as %2F",
    )


def failure_of(error: psycopg.Error, server: Server) -> Failure:
    """The failure of a database of this server."""
    state, name = error.sqlstate or "", server.name
    details = {"path": name, "sqlstate": state}
    # The further lines repeat the statement and its place.
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    if state == "55P03":
        return Failure(
            "io_error",
            f"another process has kept the database locked for {gate.PATIENCE:g} seconds",
            hint="end the stopped process that uses this home, then try again",
            retryable=True,
            details=details,
        )
    if state == "42501" or (state == "42P01" and '"gate"' in reason):
        return _refused(error, server, reason)
    if state.startswith("XX"):
        return Failure("damaged", f"the database {name} is damaged: {reason}", hint="check the server", details=details)
    hint = next((text for start, text in _HINTS.items() if state.startswith(start)), None)
    if not state and isinstance(error, psycopg.OperationalError):
        hint = next((text for said, text in _REFUSALS.items() if re.search(said, reason)), _UNREACHABLE)
    retryable = state.startswith(_LOST) or (isinstance(error, psycopg.OperationalError) and state != "53100")
    return Failure("io_error", f"can't use the database {name}: {reason}", hint, retryable, details=details)


def _refused(error: psycopg.Error, server: Server, reason: str) -> Failure:
    """The failure of a user who lacks a right. A trigger says itself which role is needed."""
    hint = error.diag.message_hint
    if hint is None:
        reason, hint = _explained(server, reason)
    details = {"path": server.name, "sqlstate": error.sqlstate}
    return Failure("permission_denied", reason, hint, rule="database.role", details=details)


def _explained(server: Server, reason: str) -> tuple[str, str]:
    """A reason of the server itself, which only names the table or the schema, in our words, and what can be done."""
    user = f"your database user {server.user}"
    if "pg_signal_backend" in reason:
        granted = f"GRANT pg_signal_backend TO {_quoted(server.user)}"
        return (
            f"{user} can't end the connection of another user",
            f"the other user can, or an administrator runs: {granted}",
        )
    table = next((table for table in GRANTS if table in reason.split()), None)
    if table is not None:
        role = [*GRANTS[table]][-1]
        granted = f"GRANT {_quoted(server.role(role))} TO {_quoted(server.user)}"
        return f"{user} isn't {a_role(role)}", f"have somebody with this role do it, or an administrator run: {granted}"
    return f"{user} has no role of this home" if '"gate"' in reason or "schema" in reason else reason, _GRANT


def _quoted(name: str) -> str:
    """The name as an identifier, quoted only if it must be."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


def ends_connection(error: psycopg.Error, connection: psycopg.Connection) -> bool:
    """Whether the connection is lost."""
    return connection.closed or (error.sqlstate or "").startswith(_LOST)


def can_be_stored(value: Any) -> bool:
    """Whether PostgreSQL can have this value: no text with NUL or half of a surrogate pair."""
    if not isinstance(value, str):
        return True
    try:
        return b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


#: What a forked child must neither use nor close: closing would end the session of its parent.
_parents_connections: list[object] = []


class Link:
    """A connection that is made at the first use, and again if it is lost. One thread at a time may use it.

    `settings` are those of the server. `lost` is called before a connection is given up.
    """

    def __init__(self, server: Server, lost: Callable[[], None] = lambda: None, **settings: str) -> None:
        self._server, self._lost, self._settings = server, lost, settings
        self.connection: psycopg.Connection | None = None

    def living(self) -> psycopg.Connection:
        """The connection, or a new one if it is lost, or an exception has left it in the middle of a statement."""
        connection = self.connection
        if connection is not None and connection.pgconn.transaction_status != TransactionStatus.IDLE:
            self.drop()
        if self.connection is None:
            self.connection = self._server.connect(**self._settings)
        return self.connection

    def drop(self) -> None:
        """Close the connection."""
        # First, because this thread can be interrupted: all that belongs to the connection is lost.
        self._lost()
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def retried(self, use: Callable[[psycopg.Connection], _T]) -> _T:
        """`use(connection)`, once more on a new connection if the old one is found to be lost. Outside of transactions.

        Raises:
            Failure: `io_error`, `damaged`.
        """
        for again in (True, False):
            connection = self.living()
            try:
                return use(connection)
            except psycopg.Error as error:
                if ends_connection(error, connection):
                    self.drop()
                    if again:
                        continue
                raise failure_of(error, self._server) from error
        raise AssertionError

    def abandon(self) -> bool:
        """In a forked child: forget the parent's connection. Returns whether there was one."""
        connection, self.connection = self.connection, None
        _parents_connections.append(connection)
        return connection is not None
