"""What only a record on PostgreSQL has: a server that can be away, connections that end, processes on other machines."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from albert_tools.engine.authority.sessions import Sessions
from albert_tools.engine.model.failure import Failure
from albert_tools.store.postgres_layout import LAYOUT, initialize
from albert_tools.store.record import gate
from albert_tools.store.record.export import checked_lines, exported
from albert_tools.store.record.postgres import PostgresDatabase
from albert_tools.store.record.record import Record
from albert_tools.store.record.runs import Runs
from albert_tools.store.record.verify import verify
from tests.helpers.begun_runs import begun
from tests.helpers.children import Child, Report
from tests.helpers.gate import until
from tests.helpers.postgres import server
from tests.store.record.conftest import change
from tests.store.record.test_faults import needs_root, small_disk

RUN = "0123456789abcdef"


@pytest.fixture
def record(url: str) -> Iterator[Record]:
    with Record(url) as opened:
        yield opened


def pids(record: Record) -> list[int]:
    """The server's processes that serve this record's connection for writing."""
    database = record.database
    assert isinstance(database, PostgresDatabase)
    assert database._link.connection is not None
    return [database._link.connection.info.backend_pid]


def terminate(record: Record) -> None:
    """End the connection on which `record` writes, as an administrator does it."""
    (pid,) = pids(record)
    with closing(server().connect()) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 30000)", (pid,))


# Without a server, or without psycopg


@pytest.mark.parametrize("missing", [False, True])
def test_psycopg_is_needed_for_a_url_only(folder: Path, missing: bool) -> None:
    program = f"""
import sys
from pathlib import Path
from albert_tools.engine.model.failure import Failure
from albert_tools.store.record.record import Record
from albert_tools.store.record.verify import verify
with Record(Path({str(folder)!r})) as record:
    record.append("a", {{}})
assert verify(Path({str(folder)!r})).ok
assert "psycopg" not in sys.modules
if {missing}:
    sys.modules["psycopg"] = None
try:
    Record("postgresql:///x?host=/nowhere").append("a", {{}})
except Failure as failure:
    print(failure.code, failure.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    words = 'not_found pip install "albert-tools[fleet]"' if missing else "io_error check the host, port"
    assert done.stdout.startswith(words)


def test_a_failure_says_what_to_do_and_never_the_password(url: str) -> None:
    administrator = server().connect(url)
    with suppress(psycopg.errors.DuplicateObject):
        administrator.execute("CREATE USER guarded PASSWORD 'right'")
    Record(url).append("a", {})
    cases = [
        (
            url.replace("user=albert", "user=guarded&password=secret"),
            "password authentication failed",
            "in ~/.pgpass",
        ),
        (url.replace("user=albert", "user=guarded"), "no password supplied", "in ~/.pgpass"),
        (url.replace("/postgres?", "/nothing?"), 'database "nothing" does not exist', "correct its name"),
        (url.replace("host=", "host=/nowhere"), "No such file", "check the host"),
        (f"{url}%20-cdefault_transaction_read_only%3Don", "read-only transaction", "URL of the primary server"),
    ]
    for wrong, said, hint in cases:
        with pytest.raises(Failure, match=said) as caught:
            Record(wrong).append("b", {})
        assert caught.value.code == "io_error"
        assert hint in str(caught.value.hint)
        assert "secret" not in str(caught.value) + str(caught.value.details)
    wrong_urls = ("u:secret@[", "u:p@secret@h/x", "u:sec/ret@h/x", "u:secret@host/x?what=1")
    for bad in ("/home/albert", *(f"postgresql://{url}" for url in wrong_urls)):
        with pytest.raises(Failure, match="the URL of the database can't be read") as caught:
            Record(bad)
        assert caught.value.code == "invalid_arguments"
    administrator.close()


@pytest.mark.parametrize("layout", [LAYOUT - 1, LAYOUT + 1])
def test_another_layout_is_refused(record: Record, url: str, layout: int) -> None:
    record.append("a", {})
    change(url, f"UPDATE gate SET format = {layout}")
    refused = f"has layout {layout}, and this version of Albert Tools reads {LAYOUT}"
    for use in (lambda: record.append("b", {}), lambda: Record(url).append("b", {}), lambda: initialize(url)):
        with pytest.raises(Failure, match=refused):
            use()
    with pytest.raises(Failure, match=refused):
        verify(url)  # That is no sign of an attack.
    change(url, f"UPDATE gate SET format = {LAYOUT}")
    assert record.append("b", {}) == 2


@needs_root
def test_a_full_disk_of_the_server_loses_no_entry() -> None:
    place, url = server().folder / "small", server().url()
    with small_disk(place, "5m") as remount, closing(server().connect(url)) as administrator:
        place.chmod(0o755)
        (place / "tables").mkdir(mode=0o700)
        shutil.chown(place / "tables", server().user)
        administrator.execute(f"CREATE TABLESPACE small LOCATION '{place}/tables'")
        with Record(f"{url}%20-cdefault_tablespace%3Dsmall") as record:
            taken: list[int] = []

            def fill() -> None:
                while True:
                    taken.append(record.append("step", {"x": os.urandom(20_000).hex()}))

            with pytest.raises(Failure, match="No space left") as caught:
                fill()
            assert "free some space" in str(caught.value.hint)
            assert taken
            remount("size=20m")
            record.durable(record.append("step", {}))
            assert [entry.n for entry in record.entries()] == [*taken, len(taken) + 1]
        # The server must not miss the files later.
        (schema,) = administrator.execute("SELECT current_schema()").fetchone() or ("",)
        administrator.execute(f"DROP SCHEMA {schema} CASCADE")
        administrator.execute("DROP TABLESPACE small")


# Values and tables


def test_every_text_and_number_is_read_back(record: Record, url: str) -> None:
    texts = ["'; DROP TABLE entries; --", "\\", "\\'", "%s %% ? ?", "\0", "ä\u2028😀", "$1 $$", "E'\\x'", '"']
    data = {"texts": texts, "numbers": [2**63, -(2**63), 1e300, -0.0, 0.1], **dict.fromkeys(texts, 1)}
    record.append("step", data)
    record.append("use", {"session": None, "used": {}, "windows": texts[:4], "sessions": texts[:4], "clock": 0.1})
    (first, _) = record.entries()
    assert first.data == data
    assert record.uses.times(texts[0], texts[3], 1) == (0.1, 0.1)
    for odd in ("\0", "\ud800"):
        assert record.uses.times(odd, odd, 1) is None
        with record.transaction():
            assert record.sessions.line(odd) == []
            record.append("step", {})
    assert verify(url).problems == ()
    assert len(list(record.entries())) == 4


def test_what_a_session_has_used_is_sorted_however_the_server_reads_it(url: str) -> None:
    scans = "".join(f"%20-cenable_{kind}%3Doff" for kind in ("indexscan", "indexonlyscan", "bitmapscan"))
    with Record(f"{url}{scans}") as record:
        session, _ = Sessions(record).open("c", "/w")
        for unit in ("z", "b", "a", "b"):
            record.append("use", {"session": session.id, "used": {unit: 1}})
        assert list(record.sessions.line(session.id)[0].used) == ["a", "b", "bytes_stored", "z"]


def test_a_changed_schema_is_found(record: Record, url: str) -> None:
    record.append("a", {})
    wrong = "does not belong to the record, or was changed"
    for statement, problem, undo in [
        ("CREATE VIEW v AS SELECT 1", f"the view v {wrong}", "DROP VIEW v"),
        ("CREATE TABLE more(x BIGINT)", f"the table more {wrong}", "DROP TABLE more"),
        (
            "CREATE RULE r AS ON INSERT TO uses DO INSTEAD NOTHING",
            f"the rule r {wrong}",
            "DROP RULE r ON uses",
        ),
        (
            "CREATE TRIGGER t BEFORE UPDATE ON uses FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            f"the trigger t {wrong}",
            "DROP TRIGGER t ON uses",
        ),
        ("ALTER TABLE usage ADD COLUMN more TEXT", f"the table usage {wrong}", "ALTER TABLE usage DROP COLUMN more"),
        ("DROP INDEX runs_by_age", "the index runs_by_age is missing", "CREATE INDEX runs_by_age ON runs(began)"),
    ]:
        change(url, statement)
        assert verify(url).problems == (problem,)
        change(url, undo)
    assert verify(url).ok


def test_a_cut_end_and_changed_rows_are_found(record: Record, url: str) -> None:
    for i in range(6):
        record.append("step", {"i": i})
    record.append("use", {"session": None, "used": {}, "windows": ["w"], "sessions": [], "clock": 1.0})
    assert checked_lines(exported(record)) == (7, None, 1)
    change(url, "UPDATE uses SET at = 2")
    assert verify(url).problems == ("table uses, session '', bucket 'w', seq 1: changed in at",)
    change(url, "UPDATE uses SET at = 1")
    change(url, "UPDATE entries SET data = replace(data, '3', '9') WHERE n = 4")
    assert checked_lines(exported(record)) == (3, 4, 1)
    assert verify(url).problems == ("entry 4 was changed: its content does not match its hash",)
    change(url, "DELETE FROM entries WHERE n > 3")
    assert "the record ends after entry 3, and entry 7 existed" in verify(url).problems[0]
    with pytest.raises(Failure, match="has lost entry 7: it was cut off or replaced") as caught:
        Record(url).append("step", {})
    assert caught.value.code == "damaged"


# Owners, and connections that end


def own_and_wait(report: Report, url: str) -> None:
    with Record(url) as record:
        report(record.owner)
        time.sleep(600)


def test_an_owner_is_alive_until_its_process_is_killed(record: Record, url: str) -> None:
    child = Child(own_and_wait, url)
    owner = child.hear()
    assert record.alive(owner)
    assert not record.is_own(owner)
    os.kill(child.pid, signal.SIGSTOP)
    assert record.alive(owner)
    child.kill()
    until(lambda: not record.alive(owner))
    own = record.owner
    with Record(url) as other:
        assert other.alive(own)
        record.close()
        until(lambda: not other.alive(own))
        with pytest.raises(Failure):
            other.alive("nobody")
    assert record.owner != own


def test_with_its_connection_a_process_loses_its_runs(record: Record, url: str) -> None:
    runs, journal = Runs(record), begun(Runs(record), RUN, {})
    journal.append({"i": 0})
    journal.flush()
    owner = record.owner
    terminate(record)
    assert record.database.row("SELECT owner FROM runs") == (owner,)  # on a new connection
    assert record.owner != owner
    with Record(url) as other:
        taken = Runs(other).open(RUN)
        assert taken.entries() == [{"i": 0}]
        journal.append({"i": 1})
        lost: list[Callable[[], Any]] = [
            journal.flush,
            lambda: record.append("call", {"call": f"{RUN}:1"}),
            lambda: record.append("run", {"run": RUN, "state": "done"}),
            journal.close,
        ]
        for attempt in lost:
            with pytest.raises(Failure, match="has lost the run"):
                attempt()
        assert runs.load(RUN).held
        taken.append({"i": 2})
        taken.close()
    again = runs.open(RUN)
    assert again.entries() == [{"i": 0}, {"i": 2}]
    again.close()
    record.append("call", {})  # What belongs to no run goes on.
    assert verify(url).ok


def test_a_transaction_whose_connection_ends_is_not_committed(record: Record, url: str) -> None:
    record.append("a", {})

    def write() -> None:
        with record.transaction():
            record.append("b", {})
            terminate(record)

    with pytest.raises(Failure, match="terminating connection due to administrator command") as caught:
        write()
    assert caught.value.retryable
    record.append("c", {})
    assert [(entry.n, entry.kind) for entry in record.entries()] == [(1, "a"), (2, "c")]


def test_a_commit_whose_answer_is_lost_counts_but_not_for_the_run(record: Record, url: str) -> None:
    # With a standby that never answers, the server waits inside COMMIT. Ended there, it has committed.
    with closing(server().connect(url)) as administrator, Record(f"{url}%20-csynchronous_commit%3Don") as slow:
        journal = begun(Runs(slow), RUN, {})
        (pid,) = pids(slow)
        number = slow.database.connection_number

        def append() -> list[int]:
            found = []
            while slow.database.connection_number == number:
                found.append(slow.append("a", {}))
            return found

        administrator.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        administrator.execute("SELECT pg_reload_conf()")
        try:
            with ThreadPoolExecutor(1) as pool:
                appending = pool.submit(append)
                waits = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
                until(lambda: administrator.execute(waits, (pid,)).fetchone())
                administrator.execute("SELECT pg_terminate_backend(%s)", (pid,))
                appended = appending.result(30)
        finally:
            administrator.execute("ALTER SYSTEM RESET synchronous_standby_names")
            administrator.execute("SELECT pg_reload_conf()")
        with pytest.raises(Failure, match="has lost the run"):
            slow.append("run", {"run": journal.id, "state": "done"})
    assert [entry.n for entry in record.entries(["a"])] == appended
    assert verify(url).ok


def stand_still_inside(report: Report, url: str) -> None:
    gate.PATIENCE = 3
    record = Record(url)
    journal = begun(Runs(record), RUN, {})

    def write() -> None:
        with record.transaction():
            journal.append({"i": 0})
            journal.flush()
            report("inside")
            os.kill(os.getpid(), signal.SIGSTOP)

    with pytest.raises(Failure) as caught:
        write()
    report((caught.value.code, caught.value.retryable))
    with pytest.raises(Failure, match="has lost the run"):
        record.append("run", {"run": RUN, "state": "done"})
    record.append("free", {})
    report(record.owner)


def test_others_go_on_when_a_writer_stands_still(record: Record, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "PATIENCE", 30)
    record.append("a", {})
    child = Child(stand_still_inside, url)
    try:
        assert child.hear() == "inside"
        record.append("b", {})
        # The server rolls a transaction back before it ends the session, which holds the runs.
        journal, deadline = None, time.monotonic() + 60
        while journal is None and time.monotonic() < deadline:
            with suppress(Failure):
                journal = Runs(record).open(RUN)
        assert journal is not None
    finally:
        os.kill(child.pid, signal.SIGCONT)
    assert child.hear() == ("io_error", True)
    child.hear()
    assert child.wait() == 0
    journal.close()
    assert [entry.kind for entry in record.entries()] == ["a", "run", "b", "run_opened", "free", "steps"]
    assert verify(url).ok


def test_a_gate_that_stays_closed_is_not_waited_for_long(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Record(f"{url}%20-cidle_in_transaction_session_timeout%3D0") as record:
        with record.transaction():
            record.append("a", {})
            monkeypatch.setattr(gate, "PATIENCE", 0.05)
            with pytest.raises(Failure, match=r"has kept the database locked for 0.05 seconds") as caught:
                Record(url).append("b", {})
            assert (caught.value.code, caught.value.retryable) == ("io_error", True)
        assert [entry.kind for entry in record.entries()] == ["a"]


# A server that restarts or crashes


def test_a_restart_of_the_server_loses_nothing(record: Record, url: str) -> None:
    for i in range(20):
        record.append("step", {"i": i})
    server().stop()
    with pytest.raises(Failure, match="can't use the database") as caught:
        record.append("step", {})
    assert (caught.value.code, caught.value.retryable) == ("io_error", True)
    assert "that the server runs" in str(caught.value.hint)
    server().start()
    record.durable(record.append("step", {"i": 20}))
    assert [entry.data["i"] for entry in record.entries()] == [*range(21)]


def test_a_crash_of_the_server_loses_nothing_that_is_durable(record: Record, url: str) -> None:
    for i in range(20):
        durable = record.append("step", {"i": i})
    record.durable(durable)
    journal = begun(Runs(record), RUN, {})
    for i in range(20, 40):
        record.append("step", {"i": i})
    server().stop("immediate")
    server().start()
    n = record.append("step", {"i": "after"})
    record.durable(n)
    found = [entry.data["i"] for entry in record.entries(["step"])]
    assert found == [*range(len(found) - 1), "after"]
    assert len(found) > 20
    journal.append({})
    with pytest.raises(Failure, match="has lost the run"):
        journal.flush()
    assert verify(url).ok


def crash(record: Record, url: str, last: int) -> None:
    """What a crash does that loses all entries after `last`."""
    change(url, "DELETE FROM entries WHERE n > ?", [last])
    change(url, "UPDATE gate SET n = ?, hash = (SELECT hash FROM entries WHERE n = ?)", [last, last])
    terminate(record)


def test_after_a_loss_of_commits_that_were_not_synced_the_process_goes_on(record: Record, url: str) -> None:
    record.durable(record.append("a", {}))
    lost = [record.append("b", {}) for _ in range(3)]
    crash(record, url, 1)
    with pytest.raises(Failure, match="entry 4 may be lost") as caught:
        record.durable(lost[-1])
    assert caught.value.retryable
    assert record.append("c", {}) == 2
    record.durable(2)
    assert verify(url).ok


def test_a_loss_of_what_was_synced_is_damage(record: Record, url: str) -> None:
    record.append("a", {})
    record.durable(record.append("b", {}))
    crash(record, url, 1)
    for _ in range(2):
        with pytest.raises(Failure, match="has lost entry 2: it was cut off or replaced") as caught:
            record.append("c", {})
        assert caught.value.code == "damaged"
