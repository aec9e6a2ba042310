"""The roles of a home on PostgreSQL, attacked by users with SQL of their own."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest

from albert_tools import ToolService
from albert_tools.engine.authority.approvals import Approvals
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.manifest import ANALYSIS
from albert_tools.engine.policy.modes import Modes
from albert_tools.store.postgres_layout import initialize
from albert_tools.store.postgres_roles import ENTRIES, GRANTS, KINDS, ROLES
from albert_tools.store.record.record import Record
from albert_tools.store.record.retention import trim
from albert_tools.store.record.verify import verify
from tests.helpers.postgres import server

ROOT = Path(__file__).parent.parent.parent
REVIEW = {"tool": "t", "version": "v", "state": "active", "by": "ben", "why": "", "manifest": "m"}


@pytest.fixture(scope="module")
def team() -> str:
    """The owner's URL of a home with roles."""
    url = server().url()
    initialize(url)
    return url


Users = Callable[..., str]


@pytest.fixture
def user(team: str) -> Users:
    """The URL of a user: `user("ada", "author")`."""
    return lambda name, *roles: server().login(team, name, *roles)


@pytest.fixture
def ada(user: Users) -> Iterator[psycopg.Connection]:
    """The connection of an author, with a schema of her own. The record has a question, and a version that was revoked."""
    url = user("ada", "author")
    with Record(user("ben", "reviewer")) as record:
        record.append("asked", {"approval": question(), "action": "a", "run": "", "step": "", "expires": 1e12})
        record.append("review", {**REVIEW, "state": "revoked"})
    with closing(server().connect(url)) as connection:
        server().connect(url.replace("user=ada", "user=albert")).execute(
            "CREATE SCHEMA IF NOT EXISTS evil AUTHORIZATION ada"
        )
        yield connection


numbers = count()


def question() -> str:
    return f"q{next(numbers)}"


# Every kind, and every table


def kinds_in_the_code() -> set[str]:
    """The kinds of the entries that the product appends: two arguments, of which the first is a text."""
    found = {"checkpoint"}
    for folder in ("engine", "store", "builtins", "surfaces", "telemetry"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(
                        ast.Attribute(attr="append" | "push" | "_record"), [ast.Constant(str(kind)), *more], named
                    ):
                        found |= {kind} if more or named else set()
    return found


def test_every_kind_of_entry_has_a_role() -> None:
    assert kinds_in_the_code() == KINDS.keys()


def test_the_page_shows_the_role_of_every_kind() -> None:
    page = (ROOT / "docs" / "fleet.md").read_text()
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.startswith("| **")}
    for role, kinds in ENTRIES.items():
        named = rows[f"**{role}**"].split("|")[3].replace("`", "").replace(",", " ").split()
        assert sorted(named) == sorted(kinds.split())


def test_every_table_has_grants(team: str) -> None:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    with closing(server().connect(team)) as connection:
        assert {name for (name,) in connection.execute(query)} == GRANTS.keys()


# What each role can do


def test_each_role_appends_its_own_kinds_only(user: Users, team: str) -> None:
    data = {"run_cancelled": {"run": "r"}, "steps": {"run": "r", "released": True}}
    for role in ROLES:
        with closing(server().connect(user(f"only_{role}", role))) as connection:
            for kind, wanted in KINDS.items():
                (n,) = connection.execute("SELECT coalesce(max(n), 0) + 1 FROM entries").fetchone() or (0,)
                text = json.dumps({**data.get(kind, {}), "by": f"only_{role}", "user": f"only_{role}"})
                try:
                    with connection.transaction(force_rollback=True):
                        connection.execute("INSERT INTO entries VALUES (%s, '', %s, '', %s, '')", (n, kind, text))
                    may = True
                except psycopg.errors.InsufficientPrivilege:
                    may = False
                assert may == (wanted in (role, "worker")), (role, kind)


def test_roles_are_created_once_and_repaired(user: Users, team: str) -> None:
    url = user("ada", "author")
    with closing(server().connect(team)) as connection:
        connection.execute("GRANT DELETE ON entries TO PUBLIC; DROP FUNCTION demand_role CASCADE")
    assert initialize(team) == initialize(team)
    with closing(server().connect(url)) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("DELETE FROM entries")
    assert verify(team).ok
    with pytest.raises(Failure, match="only the owner of the tables") as caught:
        initialize(url)
    assert caught.value.code == "permission_denied"


def test_who_decides_is_the_login(user: Users, team: str) -> None:
    with Record(user("ben", "reviewer")) as record:
        record.append("review", {**REVIEW, "version": "w", "by": "ada"})
        row = record.reviews.get("t", "w")
        assert row is not None
        assert row.by == "ben"
        # The rules don't become a person, and the login stands beside them.
        record.append("review", {**REVIEW, "version": "x", "by": "the rules"})
        assert record.reviews.of_tool("t")[0].by == "the rules"
        assert [*record.entries(("review",))][-1].data["user"] == "ben"
        asked = question()
        record.append("asked", {"approval": asked, "action": "a", "run": "", "step": "", "expires": 1e12})
        record.append(
            "answered", {"approval": asked, "choice": "once", "by": "the rules", "state": "yes", "covers": ""}
        )
        row = record.approvals.get(asked)
        assert row is not None
        assert row.by == "ben"
    with Record(user("ada", "author")) as record:
        with pytest.raises(Failure, match="your database user ada isn't a reviewer") as caught:
            record.append("review", REVIEW)
        assert caught.value.code == "permission_denied"
        assert "GRANT" in str(caught.value.hint)
        assert not Approvals(record).may_answer
        record.append("definition", {"tool": "t", "version": "w"})
    with Record(team) as record:
        record.append("review", {**REVIEW, "version": "y", "by": "anybody"})
        assert record.reviews.of_tool("t")[0].by == "anybody"
    assert verify(team).ok


def test_only_an_operator_deletes_old_entries(user: Users) -> None:
    url = server().url()
    initialize(url)
    old = iter([10**15, *[2 * 10**18] * 20])
    with Record(url, lambda: next(old)) as record:
        for _ in range(2):
            record.append("call", {})
    from datetime import UTC, datetime

    until = datetime(2000, 1, 1, tzinfo=UTC)
    for name, role in (("ada", "author"), ("ben", "reviewer"), ("olga", "operator")):
        with Record(server().login(url, name, role)) as record:
            if role == "operator":
                assert trim(record, until).entries == 1
            else:
                with pytest.raises(Failure, match=f"{name} isn't an operator"):
                    trim(record, until)
        assert verify(url).ok


# Attacks


def refused(connection: psycopg.Connection, *statements: str) -> None:
    """Require that the last statement is refused."""
    with connection.transaction(force_rollback=True):
        for statement in statements[:-1]:
            connection.execute(statement)
        with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(statements[-1])
            raise AssertionError(f"not refused: {statements[-1]}")


NEXT = "(SELECT max(n) + 1 FROM entries)"
ENTRY = f"INSERT INTO entries VALUES ({NEXT}, '', 'review', '', '{json.dumps(REVIEW)}', '')"
AS_ADA = ENTRY.replace('"ben"', '"ada"')
AS_RULES = ENTRY.replace('"ben"', '"the rules"')
AS_BEN = ENTRY.replace("'review'", "'definition'").replace('"by"', '"user"')
APPROVE = "UPDATE reviews SET state = 'active', reviewer = '{}'"
ANSWER = "UPDATE approvals SET state = 'yes', choice = 'once', answered_by = '{}' WHERE state = 'open'"
SHADOW = (
    "CREATE FUNCTION evil.pg_has_role(name, oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE TABLE evil.pg_roles AS SELECT rolname, oid FROM pg_roles",
    "CREATE TEMP TABLE pg_class AS SELECT oid, (SELECT oid FROM pg_roles WHERE rolname = 'ada') relowner FROM pg_class",
)


ATTACKS = [
    # An approval, by the entry or by the row
    [ENTRY],
    [AS_ADA],
    [AS_BEN],
    [APPROVE.format("ben")],
    [APPROVE.format("ada")],
    [APPROVE.format("the rules")],
    ["INSERT INTO reviews VALUES ('t', 'u', 'active', 'ada', '', '', 'm', 1)"],
    ["DELETE FROM reviews"],
    # An answer
    [ANSWER.format("ben")],
    [ANSWER.format("ada")],
    ["INSERT INTO approvals SELECT 'q', 1, 'a', '', '', 'yes', 'once', 'ben', '', '', 1, data FROM approvals"],
    ["UPDATE approvals SET data = '{}'"],
    ["UPDATE approvals SET covers = 'everything'"],
    # What is written
    ["UPDATE entries SET data = '{}'"],
    ["DELETE FROM entries"],
    ["TRUNCATE entries"],
    ["UPDATE steps SET data = ''"],
    ["UPDATE gate SET format = 1"],
    ["UPDATE artifacts SET record = ''"],
    # Rules, mode and mounts
    ["INSERT INTO files VALUES ('governance.yaml', '', 1)"],
    ["UPDATE files SET content = ''"],
    ["DELETE FROM files"],
    # The fence itself
    ["DROP TRIGGER demand_role ON entries"],
    ["ALTER TABLE entries DISABLE TRIGGER ALL"],
    ["CREATE TRIGGER other BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"],
    ["CREATE RULE other AS ON INSERT TO entries DO INSTEAD NOTHING"],
    ["SET session_replication_role = replica"],
    ["CREATE OR REPLACE FUNCTION demand_role() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"],
    ["CREATE TABLE other(n INT)"],
    ["ALTER TABLE reviews OWNER TO ada"],
    # Another identity
    ["SET SESSION AUTHORIZATION ben"],
    ["DO $$ BEGIN EXECUTE format('SET ROLE %I', 'postgres.' || current_schema() || '_reviewer'); END $$"],
    ["DO $$ BEGIN EXECUTE format('GRANT %I TO ada', 'postgres.' || current_schema() || '_reviewer'); END $$"],
    # Names that hide those of the server
    [*SHADOW, "SELECT set_config('search_path', 'evil, pg_catalog, ' || current_schema(), true)", AS_ADA],
]  # fmt: skip


def test_an_author_can_not(ada: psycopg.Connection, team: str) -> None:
    for attack in ATTACKS:
        refused(ada, *attack)
    assert verify(team).ok


def test_a_function_of_an_author_does_not_act_for_the_reviewer_who_calls_it(
    ada: psycopg.Connection, user: Users
) -> None:
    (schema,) = ada.execute("SELECT current_schema()").fetchone() or ("",)
    ada.execute(
        "CREATE FUNCTION evil.harmless() RETURNS void LANGUAGE sql SECURITY DEFINER "
        f"SET search_path = {schema} AS $${ENTRY}$$; GRANT USAGE ON SCHEMA evil TO PUBLIC"
    )
    try:
        with closing(server().connect(user("ben", "reviewer"))) as ben:
            refused(ben, "SELECT evil.harmless()")
    finally:
        ada.execute("DROP FUNCTION evil.harmless")


def test_a_reviewer_can_not_decide_as_somebody_else(ada: psycopg.Connection, user: Users) -> None:
    with closing(server().connect(user("eve", "reviewer"))) as eve:
        refused(eve, ENTRY)
        refused(eve, APPROVE.format("ben"))
        refused(eve, ANSWER.format("ben"))
        # Only a review that activates is the rules', and it names the login.
        refused(eve, AS_RULES)
        refused(eve, AS_RULES.replace('"manifest"', '"user": "ben", "manifest"'))
        refused(eve, AS_RULES.replace('"manifest"', '"user": "eve", "manifest"').replace("active", "revoked"))
        refused(eve, AS_RULES.replace('"manifest"', '"user": "eve", "manifest"').replace("'review'", "'answered'"))
        refused(eve, APPROVE.format("the rules").replace("active", "revoked"))
        refused(eve, ANSWER.format("the rules"))
        with eve.transaction(force_rollback=True):
            eve.execute(ANSWER.format("eve"))
            refused(eve, "UPDATE approvals SET state = 'open' WHERE state = 'yes'")


def test_a_user_without_a_role_can_not_even_read(user: Users) -> None:
    with pytest.raises(Failure) as caught:
        Record(user("stranger")).append("call", {})
    assert "grant this user a role" in str(caught.value.hint)


async def test_a_manifest_is_made_by_the_source_alone(user: Users, team: str, tmp_path: Path) -> None:
    """A worker's process, which can't store a manifest, makes it for itself. An approval doesn't believe a stored one."""
    source = 'def t(path: str) -> str:\n    """Read."""\n    return tools.read_file(path=path)\n'
    (tmp_path / ".albert").mkdir()
    (tmp_path / "a.txt").write_text("hello")
    author, worker, reviewer = user("ada", "author"), user("walt", "worker"), user("ben", "reviewer")
    async with ToolService.open(home=author, workspace=tmp_path) as service:
        await service.define(source)
    old = f"UPDATE versions SET document = jsonb_set(document::jsonb, '{{manifest,analysis}}', '{ANALYSIS - 1}') WHERE tool = 't'"
    false = "UPDATE versions SET document = jsonb_set(document::jsonb, '{manifest,calls}', '[]') WHERE tool = 't'"
    with closing(server().connect(worker)) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(old)
    with closing(server().connect(author)) as connection:
        connection.execute(old)
        async with ToolService.open(home=worker, workspace=tmp_path) as service:
            assert (await service.invoke("t", {"path": "a.txt"})).value() == "hello"
            assert (await service.invoke("t", {"path": "a.txt"})).value() == "hello"
        async with ToolService.open(home=author, workspace=tmp_path) as service:
            await service.review("t")
        connection.execute(false)
    async with ToolService.open(home=reviewer, workspace=tmp_path) as service:
        with pytest.raises(Failure, match="what is stored of t is not what its source makes here"):
            await service.approve("t", "ben")


def test_the_mode_that_a_worker_can_not_switch_holds_in_its_process(user: Users, team: str, tmp_path: Path) -> None:
    from albert_tools.store.home_tables import HomeTables
    from albert_tools.store.postgres_files import PostgresFile, PostgresFiles

    url = user("walt", "worker")
    with Record(url) as record:
        file = PostgresFile(PostgresFiles(HomeTables(url)), "mode.json")
        modes = Modes(file, ledger=record, folder=tmp_path)
        with pytest.raises(Failure, match="walt isn't an operator"):
            modes.switch("LOCKDOWN", "walt", "")
        assert modes.mode == "LOCKDOWN"
        assert Modes(file, ledger=record).mode == "NORMAL"
