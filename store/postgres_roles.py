"""Who may change what in a home on PostgreSQL, by the roles of the database's users.

The server decides this, by the login (`session_user`). Grants say who may write which table. Nobody may change or delete an entry,
except that an operator deletes old ones. A trigger says who may append which kind of entry, and requires that an entry with a
person's decision names the login. The tables `reviews` and `approvals` follow from such entries, so it checks their rows, too. The
owner of the tables may do all: without roles, everybody uses the owner's login.

What a process reports about its own calls is not checked: it could make the calls without reporting them. So each role includes the
role `worker`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import psycopg
from psycopg import sql

from albert_tools.engine.authority.reviews import BY_RULES
from albert_tools.engine.model.failure import Failure

ROLES = ("worker", "author", "reviewer", "operator")
#: The kinds of entries that each role may append, besides those of `worker`.
ENTRIES = {
    "worker": "approval_revoked approval_used asked batch call clock_set_back copied denied escape handed malformed notified "
    "policy queued repeat repeated result run run_cancelled run_changes run_opened schedule_begun session session_ended "
    "session_times settled shown steps stored taken use waits worker worker_ended",
    "author": "definition removal",
    "reviewer": "answered review",
    "operator": "checkpoint mode rules_imported runs_swept schedule schedule_removed",
}
#: The role that may append a kind of entry.
KINDS = {kind: role for role, kinds in ENTRIES.items() for kind in kinds.split()}
#: The kinds that name the login: as the one who decides, or as the user who defines, queues or runs (`by` is a session then). A
#: review by which the rules activate a version names it as the user, too.
SIGNED = dict.fromkeys(("answered", "copied", "mode", "review", "rules_imported", "schedule", "schedule_removed"), "by")
_BY_USER = (*ENTRIES["author"].split(), "queued", "run")
SIGNED |= dict.fromkeys(_BY_USER, "user")
#: What each role may do with a table, besides reading all tables.
GRANTS = {
    "entries": {"worker": "INSERT", "operator": "DELETE"},
    "gate": {"worker": "UPDATE (n, hash)"},
    "sessions": {"worker": "INSERT, UPDATE (ended, data)"},
    "usage": {"worker": "INSERT, UPDATE (amount)"},
    "uses": {"worker": "INSERT, UPDATE (at), DELETE"},
    "approvals": {"worker": "INSERT, UPDATE", "operator": "DELETE"},
    "repeats": {"worker": "INSERT, UPDATE (state), DELETE"},
    "runs": {"worker": "INSERT, UPDATE", "operator": "DELETE"},
    "steps": {"worker": "INSERT", "operator": "DELETE"},
    "reviews": {"author": "UPDATE", "reviewer": "INSERT, UPDATE"},
    "queued": {"worker": "INSERT, UPDATE, DELETE"},
    "workers": {"worker": "INSERT, UPDATE, DELETE"},
    "schedules": {"worker": "UPDATE (last)", "operator": "INSERT, UPDATE, DELETE"},
    "seen": {"worker": "INSERT"},
    "stored": {"worker": "INSERT", "operator": "DELETE"},
    "tools": {"author": "INSERT, UPDATE"},
    # The manifest of a version is not covered by its hash, so who runs tools can't write it.
    "versions": {"author": "INSERT, UPDATE"},
    "calls": {"author": "INSERT, DELETE"},
    "contents": {"worker": "INSERT, UPDATE", "operator": "DELETE"},
    "artifacts": {"worker": "INSERT"},
    "files": {"operator": "INSERT, UPDATE"},
}


def _texts(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_WHEN = " ".join(f"WHEN NEW.kind IN ({_texts(kinds.split())}) THEN '{role}'" for role, kinds in ENTRIES.items())
#: The beginning of the names of a home's roles, by a schema. They belong to the whole server.
_PREFIX = "current_database() || CASE {schema} WHEN 'albert' THEN '' ELSE '.' || {schema} END || '_'"
#: `search_path` is set so that no function, operator or table of the caller takes the place of the server's. The effective user is
#: checked, too, so that nobody's function acts for the person who calls it.
TRIGGERS = f"""
CREATE FUNCTION @demand_role() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner oid := (SELECT relowner FROM pg_class WHERE oid = TG_RELID);
  wanted text;
  signer text := session_user;
  role text;
BEGIN
  IF pg_has_role(session_user, owner, 'MEMBER') AND pg_has_role(current_user, owner, 'MEMBER') THEN
    RETURN NEW;
  END IF;
  IF TG_TABLE_NAME = 'entries' THEN
    wanted := CASE {_WHEN} END;
    IF NEW.kind IN ({_texts(SIGNED)}) THEN
      signer := NEW.data::json ->> CASE WHEN NEW.kind IN ({_texts(_BY_USER)}) OR NEW.kind = 'review'
        AND (NEW.data::json ->> 'by', NEW.data::json ->> 'state') = ('{BY_RULES}', 'active') THEN 'user' ELSE 'by' END;
    END IF;
  ELSIF TG_TABLE_NAME = 'reviews' THEN
    wanted := 'reviewer';
    IF NEW.reviewer <> '{BY_RULES}' OR NEW.state NOT IN ('active', 'deprecated') THEN
      signer := NEW.reviewer;
    END IF;  -- Otherwise the rules have activated a version in the place of another one. The entry names the login.
    IF TG_OP = 'UPDATE' THEN
      IF OLD.state = 'deprecated' AND NEW.state = 'pending' AND NEW.manifest = '' AND NEW.why = ''
        AND (NEW.tool, NEW.version, NEW.n) = (OLD.tool, OLD.version, OLD.n)
      THEN  -- The version is defined again.
        wanted := 'author';
        signer := session_user;
      END IF;
    END IF;
  ELSIF TG_OP = 'INSERT' THEN
    IF (NEW.state, NEW.choice, NEW.answered_by, NEW.used_by, NEW.covers) = ('open', '', '', '', '') THEN
      wanted := 'worker';
    END IF;
  ELSIF OLD.state = 'open' AND NEW.state IN ('yes', 'no', 'standing') AND NEW.used_by = '' THEN
    wanted := 'reviewer';
    signer := NEW.answered_by;
  ELSIF (NEW.choice, NEW.answered_by) = (OLD.choice, OLD.answered_by) AND (
    NEW.state = 'used' AND OLD.state IN ('yes', 'no') AND NEW.covers = OLD.covers OR NEW.state = 'revoked' AND NEW.covers = '')
  THEN
    wanted := 'worker';
  END IF;
  IF wanted IS NULL THEN
    RAISE insufficient_privilege USING MESSAGE = format('nobody may change %s in this way', TG_TABLE_NAME),
      HINT = 'use the commands of Albert Tools';
  END IF;
  role := {_PREFIX.format(schema="TG_TABLE_SCHEMA")} || wanted;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role
    AND pg_has_role(session_user, oid, 'MEMBER') AND pg_has_role(current_user, oid, 'MEMBER'))
  THEN
    RAISE insufficient_privilege USING
      MESSAGE = format('your database user %s isn''t ', session_user)
        || CASE WHEN wanted ~ '^[ao]' THEN 'an ' ELSE 'a ' END || wanted,
      HINT = format('have somebody with this role do it, or an administrator run: GRANT %I TO %I', role, session_user);
  END IF;
  IF signer IS DISTINCT FROM session_user THEN
    RAISE insufficient_privilege USING MESSAGE = format('your database user %s can''t act as %s', session_user, signer),
      HINT = 'log in as this user';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER demand_role BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION @demand_role();
CREATE TRIGGER demand_role BEFORE INSERT OR UPDATE ON reviews FOR EACH ROW EXECUTE FUNCTION @demand_role();
CREATE TRIGGER demand_role BEFORE INSERT OR UPDATE ON approvals FOR EACH ROW EXECUTE FUNCTION @demand_role();
"""

_OURS = _PREFIX.format(schema="current_setting('search_path')")
#: The login, whether it owns the tables, the beginning of the names of this home's roles, and those that the login has.
_LOGIN = f"""
SELECT session_user::text, pg_has_role(relowner, 'MEMBER'), prefix,
  ARRAY(SELECT rolname::text FROM pg_roles WHERE starts_with(rolname, prefix) AND pg_has_role(oid, 'MEMBER'))
FROM pg_class JOIN pg_namespace space ON space.oid = relnamespace, (SELECT {_OURS} AS prefix) home
WHERE relname = 'gate' AND nspname = current_setting('search_path')
"""
#: The longest name that the server keeps whole, in bytes.
_MAX_NAME = 63


def a_role(role: str) -> str:
    """The role with its article."""
    return f"{'an' if role[0] in 'ao' else 'a'} {role}"


class Login(NamedTuple):
    """The user of a connection: the name, whether the user owns the tables, and the roles of this home that the user has."""

    name: str
    is_owner: bool
    prefix: str
    names: Sequence[str]

    def has(self, role: str) -> bool:
        """Whether this user may do what the role may do."""
        return self.is_owner or f"{self.prefix}{role}" in self.names


def login(connection: psycopg.Connection) -> Login:
    """The user of the connection. The tables must exist. Raises psycopg.Error."""
    return Login(*(connection.execute(_LOGIN).fetchone() or ("", False, "", ())))


def create_roles(connection: psycopg.Connection) -> dict[str, str]:
    """Create the roles of this home, unless they exist. Make the triggers anew, and grant each role exactly its rights.

    Returns the names of the roles. Call it in a transaction that has the lock of the layout.

    Raises:
        Failure: `permission_denied` if the user does not own the tables; `invalid_arguments` if the names are too long.
        psycopg.Error: as the server says.
    """
    user = login(connection)
    if not user.is_owner:
        raise Failure(
            "permission_denied",
            "only the owner of the tables, or a superuser, can grant roles",
            hint="run this as the user who ran it first",
        )
    names = {role: f"{user.prefix}{role}" for role in ROLES}
    longest = max(names.values(), key=len)
    if len(longest.encode()) > _MAX_NAME:
        raise Failure("invalid_arguments", f"the name {longest!r} of a role is too long", hint="use a shorter schema")
    for name in names.values():
        if not _exists(connection, name):
            connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
    worker, *others = map(sql.Identifier, names.values())
    connection.execute(sql.SQL("GRANT {} TO {}").format(worker, sql.SQL(", ").join(others)))
    connection.execute(f"DROP FUNCTION IF EXISTS demand_role() CASCADE;{TRIGGERS.replace('@', '')}", prepare=False)
    _grant(connection, {role: sql.Identifier(name) for role, name in names.items()})
    return names


def _grant(connection: psycopg.Connection, names: Mapping[str, sql.Identifier]) -> None:
    (space,) = connection.execute("SELECT current_setting('search_path')").fetchone() or ("",)
    parts = {**names, "schema": sql.Identifier(space), "every": sql.SQL(", ").join(names.values())}
    for statement in (
        "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC, {every}",
        "REVOKE ALL ON SCHEMA {schema} FROM PUBLIC, {every}",
        "GRANT USAGE ON SCHEMA {schema} TO {worker}",
        "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {worker}",
        *(
            f"GRANT {rights} ON {{schema}}.{table} TO {{{role}}}"
            for table, granted in GRANTS.items()
            for role, rights in granted.items()
        ),
    ):
        connection.execute(sql.SQL(statement).format(**parts))


def _exists(connection: psycopg.Connection, role: str) -> bool:
    return connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None
