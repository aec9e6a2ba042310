"""What PostgreSQL's errors mean for the user of a record."""

from __future__ import annotations

import psycopg

from albert_tools.engine.model.failure import Failure
from albert_tools.store.record import gate

_GRANT = "have the owner of the database grant this user the rights on the schema and its tables"
#: The first characters of a state (SQLSTATE) → what the user can do.
_HINTS = {
    "25006": "give the URL of the primary server: this one can only be read",
    "25P03": "try again: this process has stood still inside a transaction, so the server has ended its connection",
    "42501": _GRANT,
    "42P01": _GRANT,
    "53100": "free some space on the server's disk and try again",
    "53300": "try again later, or let the server accept more connections (max_connections)",
    "57P": "try again when the server runs: an administrator or a crash has ended the connection",
}
_UNREACHABLE = "check the host, port, user, password and database of the URL, and that the server runs"
#: States in which the server ends the connection.
_LOST = ("08", "25P03", "57P")


def failure_of(error: psycopg.Error, name: str) -> Failure:
    """The failure of the record `name`."""
    state = error.sqlstate or ""
    details = {"path": name, "sqlstate": state}
    # The further lines repeat the statement and its place.
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    if state == "55P03":
        return Failure(
            "io_error",
            f"another process has kept the record locked for {gate.PATIENCE:g} seconds",
            hint="end the stopped process that uses this home, then try again",
            retryable=True,
            details=details,
        )
    if state.startswith("XX"):
        return Failure("damaged", f"the record {name} is damaged: {reason}", hint="check the server", details=details)
    hint = next((text for start, text in _HINTS.items() if state.startswith(start)), None)
    if not state and isinstance(error, psycopg.OperationalError):
        hint = _UNREACHABLE
    retryable = state.startswith(_LOST) or (isinstance(error, psycopg.OperationalError) and state != "53100")
    return Failure("io_error", f"can't use the record {name}: {reason}", hint, retryable, details=details)


def ends_connection(error: psycopg.Error, connection: psycopg.Connection) -> bool:
    """Whether the connection is lost."""
    return connection.closed or (error.sqlstate or "").startswith(_LOST)
