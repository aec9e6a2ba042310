"""The tables of the record.

`entries` is the ledger, a hash chain. The other tables contain the state that decisions need. Each is a function of the entries: a
row changes only in the transaction that appends the entry that says so. So `verify` can build the tables again and compare.
The one exception is `steps`: its values are not redacted, so the entries contain only the hash of a run's last row.

The statements are SQLite's. `postgres_tables` writes PostgreSQL's types.
"""

import re

#: A database with another version is refused.
VERSION = 9

TABLES = """
CREATE TABLE entries(
  n INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, run TEXT NOT NULL, data TEXT NOT NULL, hash BLOB NOT NULL);
CREATE INDEX entries_of_run ON entries(run, n) WHERE run <> '';

CREATE TABLE sessions(
  id TEXT PRIMARY KEY, token_hash TEXT NOT NULL UNIQUE, parent TEXT NOT NULL, ended INTEGER NOT NULL, at TEXT NOT NULL,
  data TEXT NOT NULL);
CREATE TABLE usage(
  session TEXT NOT NULL, unit TEXT NOT NULL, amount DOUBLE PRECISION NOT NULL, PRIMARY KEY(session, unit)) WITHOUT ROWID;

CREATE TABLE uses(
  session TEXT NOT NULL, bucket TEXT NOT NULL, seq INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY(session, bucket, seq)) WITHOUT ROWID;

CREATE TABLE approvals(
  id TEXT PRIMARY KEY, n INTEGER NOT NULL, action TEXT NOT NULL, run TEXT NOT NULL, step TEXT NOT NULL, state TEXT NOT NULL,
  choice TEXT NOT NULL, answered_by TEXT NOT NULL, used_by TEXT NOT NULL, covers TEXT NOT NULL, changed INTEGER NOT NULL,
  data TEXT NOT NULL);
CREATE INDEX approvals_by_action ON approvals(action, n);
CREATE INDEX approvals_by_cover ON approvals(covers, n) WHERE covers <> '';
CREATE INDEX approvals_by_run ON approvals(run, step) WHERE run <> '';
CREATE INDEX approvals_by_state ON approvals(state);

CREATE TABLE repeats(
  key TEXT PRIMARY KEY, seq INTEGER NOT NULL UNIQUE, digest TEXT NOT NULL, run TEXT NOT NULL, owner TEXT NOT NULL,
  state TEXT NOT NULL, at DOUBLE PRECISION NOT NULL);

CREATE TABLE runs(
  id TEXT PRIMARY KEY, began INTEGER NOT NULL, created TEXT NOT NULL, changed TEXT NOT NULL, owner TEXT NOT NULL,
  state TEXT NOT NULL, cancelled INTEGER NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL, session TEXT NOT NULL);
CREATE INDEX runs_by_age ON runs(began);
CREATE TABLE steps(
  run TEXT NOT NULL, seq INTEGER NOT NULL, data TEXT NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(run, seq));

CREATE TABLE reviews(
  tool TEXT NOT NULL, version TEXT NOT NULL, state TEXT NOT NULL, reviewer TEXT NOT NULL, why TEXT NOT NULL, at TEXT NOT NULL,
  manifest TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(tool, version));
CREATE INDEX reviews_by_state ON reviews(state, tool);

CREATE TABLE seen(
  session TEXT NOT NULL, kind TEXT NOT NULL, example TEXT NOT NULL, run TEXT NOT NULL, PRIMARY KEY(session, kind)) WITHOUT ROWID;

CREATE TABLE stored(session TEXT NOT NULL, ref TEXT NOT NULL, PRIMARY KEY(session, ref)) WITHOUT ROWID;

CREATE TABLE queued(
  run TEXT PRIMARY KEY, queue TEXT NOT NULL, priority INTEGER NOT NULL, n INTEGER NOT NULL, workspace TEXT NOT NULL,
  needs TEXT NOT NULL, stage TEXT NOT NULL, waits TEXT NOT NULL, tries INTEGER NOT NULL, session TEXT NOT NULL);
CREATE INDEX queued_in_order ON queued(stage, session, priority, n);
CREATE INDEX queued_by_question ON queued(waits) WHERE waits <> '';
CREATE TABLE workers(name TEXT PRIMARY KEY, owner TEXT NOT NULL, at TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE schedules(name TEXT PRIMARY KEY, last TEXT NOT NULL, data TEXT NOT NULL);
"""
#: What only PostgreSQL has. Its entries name the users of the database: the index finds who has defined a version. The one row of
#: `gate` is locked by the process that writes. It has the number of the layout of all tables (`postgres_layout.py`), and names the
#: last entry.
_POSTGRES_TABLES = """
CREATE INDEX definitions ON entries(n) WHERE kind = 'definition';
CREATE TABLE gate(format INTEGER NOT NULL, n INTEGER NOT NULL, hash BLOB NOT NULL);
"""

ALL_TABLES = tuple(re.findall(r"CREATE TABLE (\w+)", TABLES))
#: The tables with the state: all but the entries and the steps.
STATE_TABLES = tuple(name for name in ALL_TABLES if name not in ("entries", "steps"))


def postgres_tables() -> str:
    """The tables in PostgreSQL, with its types. Texts are compared by their bytes, as SQLite does it."""
    text = TABLES + _POSTGRES_TABLES
    for ours, theirs in (("INTEGER", "BIGINT"), ("BLOB", "BYTEA"), ("TEXT", 'TEXT COLLATE "C"')):
        text = re.sub(rf"\b{ours}\b", theirs, text)
    return text.replace(" WITHOUT ROWID", "")
