"""People with roles in one database: an author, a reviewer and an operator, each with a machine."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers.postgres import server

from .conftest import Albert, wait_until
from .test_two_machines import COPY, PASSWORD

REST = '''def rest() -> None:
    """Write a file many times, with a rest before each."""
    for _ in range(200):
        tools.sleep(seconds=0.2)
        tools.write_file(path="rest.txt", content="")
'''
ROLES = {"ada": ["author"], "ben": ["reviewer"], "olga": ["operator"], "walt": ["worker"], "eve": []}


@pytest.fixture
def url() -> str:
    """The URL of the administrator's home, which does not exist yet."""
    return server().url(f"albert&password={PASSWORD}")


@pytest.fixture
def person(tmp_path: Path, url: str) -> Callable[[str], Albert]:
    """Make the machine of a person with the roles above; without a name, that of the administrator."""

    def make(name: str) -> Albert:
        made = Albert(tmp_path / name)
        home = server().login(url, name, *ROLES[name]) if name in ROLES else url
        made.environ |= {"HOME": str(made.home), "ALBERT_HOME": home}
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            made.environ.pop(variable, None)
        return made

    return make


def test_each_person_does_what_the_role_allows(person: Callable[[str], Albert], url: str) -> None:
    administrator = person("administrator")
    assert "a folder has no roles" in administrator("fleet", "init", "--home", "folder").err
    created = administrator("fleet", "init")
    assert "_reviewer  reviews tools" in created.out
    assert PASSWORD not in created.out + created.err
    assert administrator("fleet", "init", "--json").document()["roles"].keys() == {
        "worker", "author", "reviewer", "operator",
    }  # fmt: skip
    ada, ben, olga, walt, eve = map(person, ROLES)
    ada.write("copy.tool", COPY)
    ada.write("a.txt", "hello")
    olga.write("rules.yaml", "tools: {copy: {requires_approval_in_modes: [NORMAL]}}\n")

    def refused(machine: Albert, role: str, *words: str) -> None:
        done = machine(*words)
        assert done.code == 3, done
        assert f"isn't a{'n' if role[0] in 'ao' else ''} {role}" in done.err
        assert "have somebody with this role do it, or an administrator run: GRANT" in done.err

    # The rules and the mode are the operator's.
    assert olga("policy", "init").code == 0
    assert (
        olga(
            "policy", "import", olga.write("rules.yaml", "tools: {copy: {requires_approval_in_modes: [NORMAL]}}\n")
        ).code
        == 0
    )
    ada.write("rules.yaml", "{}\n")
    refused(ada, "operator", "policy", "import", "rules.yaml")
    refused(ben, "operator", "mode", "ALERT")
    assert ", by olga" in olga("mode", "ALERT").out
    assert olga("mode", "NORMAL").code == 0

    # A tool is the author's, and its review the reviewer's.
    refused(ben, "author", "define", str(ada.project / "copy.tool"))
    assert ada("define", "copy.tool").code == 0
    assert "by ada, " in ben("review").out
    assert "pending by ada, " in ben("review", "copy").out
    assert re.search(r"saved .* UTC  by ada\n", ben("show", "copy").out)
    refused(ada, "reviewer", "review", "copy", "--approve")
    assert ben("review", "copy", "--approve").code == 0
    assert "approved by ben" in ada("tools").out
    refused(ada, "reviewer", "remove", "copy")

    # Nobody asks a person who may not answer.
    code, shown = ada.terminal("run", "copy", "source=a.txt")
    assert code == 4, shown
    assert "a reviewer answers with" in " ".join(shown.split())
    (question,) = walt("approvals", "--json").document()["approvals"]
    refused(walt, "reviewer", "approvals", "answer", question["approval"], "once", "--yes")
    assert ben("approvals", "answer", question["approval"], "once").code == 0
    assert ada("runs", "resume", question["run"]).code == 0
    assert (ada.project / "copy.txt").read_text() == "hello"
    assert "ben answered once" in walt("ledger", "query").out
    assert "the ledger is intact" in walt("ledger", "verify").out
    assert walt("doctor", "--quick").code == 0

    ada.write("rest.tool", REST)
    assert ada("define", "rest.tool").code == 0

    # A worker executes what others queue, and schedules are the operator's.
    walt.write("a.txt", "hello")
    there = ("--workspace", str(walt.project))
    refused(ada, "operator", "schedule", "add", "s", "* * * * *", "read_file", "path=a.txt", *there)
    assert olga("schedule", "add", "s", "0 0 1 1 *", "read_file", "path=a.txt", *there).code == 0
    run = ada("run", "--queue", "default", "read_file", "path=a.txt", *there).out.strip()
    output = walt.project / "output"
    with output.open("wb") as stream:
        worker = walt.start("worker", "--name", "walt", stdout=stream)
    try:
        wait_until(lambda: ada("runs", "show", run, "--json").document()["state"] == "done")
        assert ada("runs", "show", run, "--json").document()["user"] == "ada"
        assert ", by ada, queue default, worker walt" in walt("runs", "show", run).out
        assert "waits in the queue default, by ada" in walt("ledger", "query").out
        evicted = ada("worker", "evict", "walt")
        assert (evicted.code, "GRANT pg_signal_backend TO ada" in evicted.err) == (3, True), evicted
        taken = ada("run", "--queue", "default", "rest", *there).out.strip()
        wait_until(lambda: ada("runs", "show", taken, "--json").document()["state"] == "running")
        assert walt("worker", "evict", "walt").code == 0
        wait_until(
            lambda: re.search(
                rf"lost +{taken}  rest: .*; it goes on in a worker that takes it again", output.read_text()
            )
        )
    finally:
        worker.kill()
        worker.wait()
    assert "schedule s of read_file made by olga" in walt("ledger", "query").out
    assert "the ledger is intact" in walt("ledger", "verify").out

    refused_at_all = eve("tools")
    assert (refused_at_all.code, "eve has no role of this home" in refused_at_all.err) == (3, True), refused_at_all
    assert "grant this user a role" in refused_at_all.err
    with closing(server().connect(url)) as connection:
        assert connection.execute("SELECT DISTINCT reviewer FROM reviews").fetchall() == [("ben",)]
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE entries SET data = '{}' WHERE n = 1")

    # Everybody finds damage. Only an operator switches the mode.
    found = walt("ledger", "verify")
    assert (found.code, "entry 1 was changed" in found.out) == (1, True), found
    assert "the mode could not be switched: your database user walt isn't an operator" in found.out
    assert "GRANT" in found.out
    assert "the mode is LOCKDOWN now" in olga("ledger", "verify").out
