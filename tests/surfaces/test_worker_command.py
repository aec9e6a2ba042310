"""``albert run --queue``, ``worker`` and ``schedule``: runs that workers execute, whatever happens to a worker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Albert, Server, wait_until

ADD = '''def add(name: str, seconds: float = 0) -> str:
    """Write a file, wait, and add to it.

    Args:
        name: The file.
        seconds: How long to wait.
    """
    tools.write_file(path=name, content="a")
    tools.sleep(seconds=seconds)
    tools.write_file(path=name, content=tools.read_file(path=name) + "b")
    return tools.read_file(path=name)
'''
REMOVE = '''def remove(name: str) -> str:
    """Write a file and delete it.

    Args:
        name: The file.
    """
    tools.write_file(path=name, content="x")
    tools.delete_file(path=name)
    return name
'''
RULES = "allow: [sleep]\ndeny: [http_request]\nqueues:\n  nightly: {at_once: 1}\n"


@pytest.fixture
def home(albert: Albert) -> Albert:
    albert.environ["XDG_DATA_HOME"] = str(albert.home.parent / "data")
    albert.write("add.tool", ADD)
    albert.write("remove.tool", REMOVE)
    assert albert("define", "add.tool", "remove.tool").code == 0
    rules = albert.home / "config" / "governance.yaml"
    rules.parent.mkdir(exist_ok=True, parents=True)
    rules.write_text(RULES)
    return albert


class Workers:
    """Starts workers, and stops them at the end."""

    def __init__(self, albert: Albert) -> None:
        self._albert = albert
        self.started: list[Server] = []

    def __call__(self, name: str, *words: str) -> Server:
        made = self._albert.serve("worker", "--name", name, *words, pipes="")
        self.started.append(made)
        wait_until(lambda: name in self.alive())
        return made

    def alive(self) -> list[str]:
        found = self._albert("worker", "list", "--json").document()["workers"]
        return [each["name"] for each in found if each["alive"]]


@pytest.fixture
def worker(home: Albert) -> Iterator[Workers]:
    workers = Workers(home)
    yield workers
    for each in workers.started:
        each.kill()
        each.wait()


def queued(albert: Albert, *words: str, queue: str = "default", **more: Any) -> str:
    done = albert("run", "--queue", queue, *words, **more)
    assert done.code == 0, done.err
    return done.out.strip()


def state(albert: Albert, run: str) -> str:
    return str(albert("runs", "show", run, "--json").document()["state"])


def said_until(albert: Albert, text: str) -> str:
    """What a worker prints until it has printed `text`. Then it is stopped."""
    output = albert.project / "output"
    with output.open("wb") as stream, albert.start("worker", stdout=stream) as process:
        try:
            wait_until(lambda: text in output.read_text())
        finally:
            process.terminate()
            process.wait()
    return output.read_text()


def wait_for(albert: Albert, run: str, wanted: str) -> dict[str, Any]:
    wait_until(lambda: state(albert, run) == wanted)
    document: dict[str, Any] = albert("runs", "show", run, "--json").document()
    return document


def test_a_worker_executes_a_queued_run(home: Albert, worker: Workers) -> None:
    run = queued(home, "add", "name=a.txt")
    assert state(home, run) == "queued"
    waits = "it waits in the queue default, for its turn or for a worker; `albert worker --queues default` starts one"
    assert waits in home("runs", "show", run).out
    worker("ada")
    done = wait_for(home, run, "done")
    assert (done["queue"], done["worker"]) == ("default", "ada")
    assert "queue default, worker ada" in home("runs", "show", run).out
    assert (home.project / "a.txt").read_text() == "ab"
    assert "\n\nresult:\nab\n" in home("runs", "show", run).out
    assert done["output"] == "ab"
    assert home("ledger", "verify").code == 0


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("add", "name=a", "--queue", "nigthly"), "no queue 'nigthly'; did you mean 'nightly'?", 1),
        (("add", "--queue", "default"), "add: name is missing", 2),
        (("ad", "--queue", "default"), "no tool named 'ad'", 3),
        (("http_request", "url=https://example.org", "--queue", "default"), "http_request", 3),
        (("add", "name=a", "--queue", "default", "--priority", "-1"), "a priority from 0 to 1000", 2),
        (("add", "name=a", "--repository", "/a"), "add --queue default", 2),
        (("add", "name=a", "--queue", "default", "--wait", "5"), "--wait is for a run that is executed here", 2),
    ],
)
def test_a_run_that_could_not_begin_is_not_queued(home: Albert, words: tuple[str, ...], said: str, code: int) -> None:
    done = home("run", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert home("runs", "--json").document()["runs"] == []


def test_a_run_that_asks_goes_on_after_the_answer(home: Albert, worker: Workers) -> None:
    worker("ada")
    run = queued(home, "remove", "name=a.txt")
    asked = wait_for(home, run, "suspended")
    goes_on = "a worker of the queue default goes on with it"
    assert f"(or say no); then {goes_on}" in home("runs", "show", run).out
    assert goes_on in home("approvals", "answer", asked["approval"], "once").out
    assert [step["state"] for step in wait_for(home, run, "done")["steps"]] == ["ended", "ended"]


def test_another_worker_goes_on_after_a_kill(home: Albert, worker: Workers) -> None:
    first = worker("ada")
    run = queued(home, "add", "name=a.txt", "seconds=60")
    wait_until(lambda: (home.project / "a.txt").exists())
    first.kill()
    first.wait()
    wait_until(lambda: state(home, run) == "interrupted")
    # A sleep that was interrupted begins again, so the other worker is also still at it.
    worker("ben")
    wait_until(lambda: state(home, run) == "running")
    assert [turn["worker"] for turn in home("runs", "show", run, "--json").document()["history"] if turn["worker"]] == [
        "ada",
        "ben",
    ]
    assert home("runs", "cancel", run).code == 0
    wait_for(home, run, "cancelled")
    assert (home.project / "a.txt").read_text() == "a"
    assert home("ledger", "verify").code == 0


def test_a_worker_that_is_stopped_lets_its_runs_end(home: Albert, worker: Workers) -> None:
    ada = worker("ada")
    first, second = queued(home, "add", "name=a.txt", "seconds=2"), queued(home, "add", "name=b.txt", queue="nightly")
    wait_until(lambda: state(home, first) == "running")
    ada.send_signal(signal.SIGTERM)
    assert ada.wait() == 0
    assert (state(home, first), state(home, second)) == ("done", "queued")
    assert worker.alive() == []


#: What `opentelemetry-instrument` does before it calls a command.
INSTRUMENTED = """
import sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter(), 200)]))
from albert_tools.surfaces.cli.main import main
sys.exit(main())
"""


def test_a_worker_reports_metrics(home: Albert) -> None:
    queued(home, "add", "name=a.txt")
    home.command = [sys.executable, "-c", INSTRUMENTED]
    home.environ["ALBERT_TELEMETRY"] = "otel"
    shown = home.project / "shown.txt"
    with shown.open("wb") as stream, home.start("worker", "--quiet", stdout=stream) as process:
        try:
            wait_until(lambda: "albert.worker.executions" in shown.read_text())
            process.terminate()
            assert process.wait() == 0
        finally:
            process.kill()
    assert {"albert.worker.count", "albert.queue.run.count", "albert.queue.wait_time"} <= set(
        re.findall(r'"name": "([a-z_.]+)"', shown.read_text())
    )


def test_a_queued_run_can_be_cancelled_or_run_here(home: Albert, worker: Workers) -> None:
    cancelled, run_here = queued(home, "add", "name=a.txt"), queued(home, "add", "name=b.txt")
    assert home("runs", "cancel", cancelled).code == 0
    assert home("runs", "resume", run_here).out == "ab\n"
    worker("ada")
    assert (state(home, cancelled), state(home, run_here)) == ("cancelled", "done")
    assert not (home.project / "a.txt").exists()


def test_the_run_of_a_session_that_has_ended_is_denied(home: Albert, worker: Workers) -> None:
    opened = home("session", "new", "--tools", "add", "--json").document()
    run = queued(home, "add", "name=a.txt", env={"ALBERT_SESSION": opened["token"]})
    home("session", "revoke", opened["session"]["session"])
    worker("ada")
    assert wait_for(home, run, "failed")["error"]["rule"] == "session.ended"
    assert not (home.project / "a.txt").exists()


def test_two_folders_have_their_own_runs(home: Albert, worker: Workers, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / ".albert").mkdir(parents=True)
    here, elsewhere = queued(home, "add", "name=a.txt"), queued(home, "add", "name=a.txt", "--workspace", str(there))
    worker("ada")
    wait_for(home, here, "done")
    assert state(home, elsewhere) == "queued"
    worker("ben", "--folders", str(there))
    wait_for(home, elsewhere, "done")
    assert (there / "a.txt").read_text() == "ab"


def test_what_a_worker_can_not_do_is_said(home: Albert, worker: Workers) -> None:
    worker("ada")
    refused = home("worker", "--name", "ada")
    assert (refused.code, refused.err) == (
        1,
        "worker ada: default, in " + str(home.project) + "\n"
        "error[exists]: a worker named ada runs already\n  help: give another --name\n",
    )
    assert "no queue 'nigthly'; did you mean 'nightly'?" in home("worker", "--queues", "nigthly").err
    evicted = home("worker", "evict", "ada")
    assert evicted.code == 3
    assert "end the process" in evicted.err
    assert home("worker", "evict", "eve").code == 1
    session = home("session", "new", "--json").document()["token"]
    assert "the mode is" not in home("fleet", "status").out
    home("mode", "ALERT")
    assert "the mode is ALERT: `albert mode` says why\n" in home("fleet", "status").out
    for words in (
        ("worker",),
        ("worker", "list"),
        ("worker", "evict", "ada"),
        ("schedule", "add", "a", "* * * * *", "add"),
    ):
        assert home(*words, env={"ALBERT_SESSION": session}).code == 3


@pytest.mark.slow
def test_a_schedule_begins_a_run_each_time(home: Albert, worker: Workers) -> None:
    added = home("schedule", "add", "each-minute", "* * * * *", "add", "name=a.txt", "--zone", "Europe/Berlin")
    assert added.code == 0, added.err
    assert "queue default" in home("schedule").out
    assert "schedule each-minute of add made by" in home("ledger", "tail").out
    assert "first at" in added.out
    assert "replaces" not in added.out
    again = home("schedule", "add", "each-minute", "* * * * *", "add", "name=a.txt")
    assert "each-minute now begins" in again.out
    assert 'it replaces * * * * * Europe/Berlin  add(name="a.txt"' in again.out
    worker("ada")
    worker("ben")
    wait_until(lambda: home("runs", "--json").document()["runs"])
    run = home("runs", "--json").document()["runs"][-1]
    assert wait_for(home, run["run"], "done")["tool"] == "add"
    assert home("schedule", "remove", "each-minute").code == 0
    assert home("schedule").out == ""


@pytest.mark.slow
def test_a_schedule_that_can_not_be_read_stops_no_worker(home: Albert, tmp_path: Path) -> None:
    there, block = tmp_path / "there", tmp_path / "block"
    (there / ".albert").mkdir(parents=True)
    for name, *where in (("mine",), ("elsewhere", "--workspace", str(there)), ("nightly", "--queue", "nightly")):
        assert home("schedule", "add", name, "* * * * *", "add", "name=a.txt", *where).code == 0
    # The worker has no package for schedules, which is one reason of several.
    block.mkdir()
    (block / "cronsim.py").write_text("raise ImportError('not here')\n")
    output, environ = home.project / "output", home.environ
    home.environ = {**environ, "PYTHONPATH": f"{block}{os.pathsep}{environ['PYTHONPATH']}"}
    with output.open("wb") as stream, home.start("worker", stdout=stream) as process:
        try:
            home.environ = environ
            wait_for(home, queued(home, "add", "name=b.txt"), "done")
            process.terminate()
            assert process.wait() == 0
        finally:
            process.kill()
    assert re.findall("problem.*", output.read_text()) == ["problem    mine: schedules need cronsim: not here"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit, on the branch main."""
    folder = tmp_path / "repository"

    def git(*words: str) -> None:
        settings = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)

    folder.mkdir()
    git("init")
    (folder / "a.txt").write_text("old\x1b[2J\n")
    git("add", ".")
    git("commit", "-m", "one")
    git("tag", "-a", "v1", "-m", "v1")
    return folder


def printed(repository: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True, text=True).stdout


def allow_repository(home: Albert, pattern: str) -> None:
    (home.home / "config" / "governance.yaml").write_text(f"{RULES}  default: {{repositories: ['{pattern}']}}\n")


def test_a_run_works_in_a_checkout_and_its_changes_are_kept(home: Albert, worker: Workers, repository: Path) -> None:
    where = ("--repository", str(repository), "--revision", "v1")
    assert f"don't list the repository '{repository}'" in home("run", "--queue", "default", "add", "name=a", *where).err
    allow_repository(home, f"{repository.parent}/*")
    patch = queued(home, "add", "name=a.txt", *where)
    branch = queued(home, "add", "name=b.txt", *where, "--changes", "branch")
    nothing = queued(home, "list_directory", "path=.", *where)
    worker("ada")
    for run in (patch, branch, nothing):
        assert wait_for(home, run, "done")["worker"] == "ada"
    wait_until(lambda: printed(repository, "branch", "--list", f"albert/{branch}"))
    wait_until(lambda: home("runs", "patch", patch).code == 0)
    commit, shown = printed(repository, "rev-parse", "v1^{commit}").strip(), home("runs", "show", patch).out
    assert f"in {repository} at {commit}\n" in shown
    assert f"changes: `albert runs patch {patch}` prints them\n" in shown
    document = home("runs", "show", branch, "--json").document()
    assert (document["repository"], document["commit"]) == (str(repository), commit)
    assert document["changes"] == {"branch": f"albert/{branch}"}
    assert f"changes: the branch albert/{branch}; `git fetch " in home("runs", "show", branch).out
    assert "no changes: " in home("runs", "show", nothing).out
    (repository / "patch").write_text(home("runs", "patch", patch).out)
    printed(repository, "apply", "patch")
    assert "-old\\x1b[2J\r\n" in home.terminal("runs", "patch", patch)[1]
    assert (repository / "a.txt").read_text() == "ab"
    assert printed(repository, "show", f"albert/{branch}:b.txt") == "ab"
    assert f"`git fetch {repository} albert/{branch}` fetches it" in home("runs", "patch", branch).err
    assert "has changed nothing" in home("runs", "patch", nothing).err
    wait_until(lambda: not list(Path(home.environ["XDG_DATA_HOME"]).glob("albert-checkouts/*")))


@pytest.mark.slow
def test_a_checkout_that_can_not_be_read_stops_no_worker(home: Albert, worker: Workers, repository: Path) -> None:
    allow_repository(home, f"{repository.parent}/*")
    words = ("add", "name=a.txt", "--repository", str(repository), "--revision", "v1")
    runs = [queued(home, *words), queued(home, *words)]
    ada = worker("ada")
    checkouts = Path(home.environ["XDG_DATA_HOME"]) / "albert-checkouts"
    for run in runs:
        wait_for(home, run, "done")
        wait_until(lambda run=run: not (checkouts / run).exists())
    ada.terminate()
    ada.wait()
    # A worker has died while it made the checkout of one run, and before it kept the changes of the other.
    half_made, left = (checkouts / run for run in runs)
    for files in (half_made / "files", left / "files"):
        files.mkdir(parents=True)
        here = os.open(files, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("a", dir_fd=here)
            here, above = os.open("a", os.O_RDONLY, dir_fd=here), here
            os.close(above)
        os.close(here)
    printed(repository, "clone", "--quiet", "--bare", str(repository), str(left / "git"))
    (left / "done").touch()
    output = home.project / "output"
    with output.open("wb") as stream, home.start("worker", "--name", "ben", stdout=stream) as ben:
        try:
            wait_for(home, queued(home, "add", "name=b.txt"), "done")
            ben.terminate()
            assert ben.wait() == 0
            assert (half_made.exists(), left.exists()) == (False, True)
        finally:
            ben.kill()
            # pytest could not.
            subprocess.run(["rm", "-rf", checkouts], check=True)
    assert re.search(rf"problem +{left.name}: there are folders more than 200 deep", output.read_text())


def test_a_repository_is_one_that_the_rules_list(
    home: Albert, worker: Workers, repository: Path, tmp_path: Path
) -> None:
    allow_repository(home, f"{tmp_path}/acme/*")
    for other in (f"{tmp_path}/acme/../repository", f"{tmp_path}/acme/%2e%2e/repository", str(repository)):
        refused = home("run", "--queue", "default", "add", "name=a", "--repository", other, "--revision", "0" * 40)
        assert (refused.code, "don't list the repository" in refused.err) == (3, True), refused.err
    # The rules are those of the time when a worker executes the run.
    allow_repository(home, f"{tmp_path}/*")
    run = queued(home, "add", "name=a.txt", "--repository", str(repository), "--changes", "branch")
    allow_repository(home, f"{tmp_path}/acme/*")
    worker("ada")
    assert wait_for(home, run, "failed")["error"]["rule"] == "queues.repositories"
    assert not printed(repository, "branch", "--list", "albert/*")


def test_a_request_that_is_refused_does_not_reach_the_repository(home: Albert, tmp_path: Path) -> None:
    asked, repository = tmp_path / "asked", "ssh://example.org/repository"
    (tmp_path / ".gitconfig").write_text(f"[core]\n\tsshCommand = touch '{asked}'; false\n")
    session = home("session", "new", "--json").document()["token"]
    env: dict[str, str | None] = {"HOME": str(tmp_path)}
    words = ("run", "--queue", "default", "add", "name=a", "--repository", repository, "--revision", "main")

    def refused(**more: str) -> str:
        done = home(*words, env={**env, **more})
        assert done.code == 3, done.err
        return done.err

    assert "don't list the repository" in refused()
    allow_repository(home, repository)
    # The control: nothing refuses this request, so it asks the repository.
    assert home(*words, env=env).code == 1
    assert asked.exists()
    asked.unlink()
    assert "a session works in its own workspace" in refused(ALBERT_SESSION=session)
    assert home("mode", "LOCKDOWN", "--cause", "a test").code == 0
    assert "LOCKDOWN" in refused()
    assert not asked.exists()
    assert len(home("ledger", "tail", "--denied").out.splitlines()) == 4


def test_a_run_whose_repository_can_not_be_reached_is_tried_again_later(home: Albert, repository: Path) -> None:
    allow_repository(home, str(repository))
    run = queued(home, "add", "name=a.txt", "--repository", str(repository), "--revision", "v1")
    repository.rename(repository.with_name("moved"))
    said = said_until(home, "later")
    assert re.search(rf"later +{run}  add: git fetch failed.*; it is tried again in 30 s\n", said)
    assert "failed  " not in said
    assert state(home, run) == "queued"


def test_a_worker_starts_no_helper_of_git_in_its_workspace(home: Albert, tmp_path: Path) -> None:
    planted, marker, repository = home.project / ".venv" / "bin" / "helper", tmp_path / "marker", "ssh://example.org/r"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    planted.chmod(0o755)
    (tmp_path / ".gitconfig").write_text("[core]\n\tsshCommand = helper\n")
    allow_repository(home, repository)
    queued(home, "add", "name=a.txt", "--repository", repository, "--revision", "a" * 40)
    home.environ |= {"HOME": str(tmp_path), "PATH": f"{planted.parent}:{home.environ['PATH']}"}
    said_until(home, "git fetch failed")
    assert not marker.exists()


def test_a_revision_that_does_not_exist_is_refused(home: Albert, repository: Path) -> None:
    allow_repository(home, str(repository))
    done = home("run", "--queue", "default", "add", "name=a", "--repository", str(repository), "--revision", "v2")
    assert (done.code, "has no branch or tag 'v2'" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a b", "* * * * *", "add", "name=x"), "is not a name for a schedule"),
        (("a", "* * * *", "add", "name=x"), "it has not five fields"),
        (("a", "@daily", "add", "name=x"), 'write "0 0 * * *"'),
        (("a", "61 * * * *", "add", "name=x"), "bad minute"),
        (("a", "0 0 31 2 *", "add", "name=x"), "its months have no day 31"),
        (("a", "* * * * *", "add", "name=x", "--zone", "Europe/Berln"), "did you mean 'Europe/Berlin'?"),
        (("a", "* * * * *", "add", "name=x", "--zone", "Mars"), "there is no time zone 'Mars'"),
        (("a", "* * * * *", "add"), "add: name is missing"),
        (("a", "* * * * *", "nothing"), "no tool named 'nothing'"),
    ],
)
def test_a_schedule_that_could_not_begin_a_run_is_refused(home: Albert, words: tuple[str, ...], said: str) -> None:
    done = home("schedule", "add", *words)
    assert done.code in (1, 2, 3)
    assert said in done.err


def test_a_batch_has_the_result_of_each_item_in_order(home: Albert, worker: Workers) -> None:
    for name in "abc":
        (home.project / name).write_text(name)
    (home.project / "c").write_text("c\x9b2Jé")
    home.write("items.jsonl", "".join(f'{{"path": "{name}"}}\n' for name in "abxc"))
    added = home("batch", "add", "read_file", "items.jsonl", "--per-run", "3")
    assert added.code == 0, added.err
    assert "4 items in 2 runs" in added.err
    batch = added.out.strip()
    assert home("batch", "results", batch).code == 4
    worker("ada")
    wait_until(lambda: home("batch", "show", batch, "--json").document()["states"] == {"done": 2})
    listed = home("batch", "results", batch).out
    results = [json.loads(line) for line in listed.splitlines()]
    assert results == [{"value": "a"}, {"value": "b"}, {"error": "there is nothing at 'x'"}, {"value": "c\x9b2Jé"}]
    assert listed.endswith('{"value": "c\\u009b2Jé"}\n')
    assert home("ledger", "verify").code == 0


def test_a_batch_can_be_cancelled(home: Albert) -> None:
    home.write("items.jsonl", '{"name": "a.txt"}\n' * 5)
    assert "5 items in 1 run;" in home("batch", "add", "add", "items.jsonl", "--per-run", "5").err
    batch = home("batch", "add", "add", "items.jsonl", "--per-run", "2").out.strip()
    cancelled = home("batch", "cancel", batch)
    assert cancelled.out == "cancelled 3 of 3 runs\n", cancelled.err
    assert home("batch", "show", batch, "--json").document()["states"] == {"cancelled": 3}
    assert home("batch", "results", batch).code == 1


SCAN = '''def scan(names: list[str]) -> str:
    """Add to many files later.

    Args:
        names: The files.
    """
    return tools.start_batch(tool="add", items=[{"name": name} for name in names], per_run=2)["batch"]
'''


def test_a_program_starts_a_batch_in_its_session(home: Albert, worker: Workers) -> None:
    home.write("scan.tool", SCAN)
    assert home("define", "scan.tool").code == 0

    def session(*words: str) -> dict[str, str]:
        return {"ALBERT_SESSION": home("session", "new", *words, "--json").document()["token"]}

    own, other = session("--tools", "scan,start_batch,read_batch,add,write_file,read_file,sleep"), session()
    batch = home("run", "scan", 'names=["a.txt", "b.txt", "c.txt"]', env=own).out.strip()

    def read(**more: Any) -> Any:
        return home("run", "read_batch", f"batch={batch}", **more)

    assert (json.loads(read(env=own).out)["results"], read(env=other).code) == ([], 1)
    worker("ada")
    wait_until(lambda: json.loads(read(env=own).out)["next_item"] is None)
    found = json.loads(read(env=own).out)
    assert (found["runs"], found["results"]) == ({"done": 2}, [{"value": "ab"}] * 3)
    # The runs are those of the session.
    runs = home("runs", "--json").document()["runs"]
    assert len({each["session"] for each in runs}) == 1
    assert runs[0]["session"] is not None
    assert home("ledger", "verify").code == 0


@pytest.mark.parametrize("tool", ["add", "nope"])
def test_a_lease_must_cover_the_tool_of_a_batch(home: Albert, tool: str) -> None:
    env = {"ALBERT_SESSION": home("session", "new", "--tools", "start_batch", "--json").document()["token"]}
    refused = home("run", "start_batch", f"tool={tool}", 'items=[{"name": "a"}]', env=env)
    assert (refused.code, f"{tool} is not among the tools" in refused.err) == (3, True), refused.err


@pytest.mark.parametrize(
    ("tool", "item", "queue", "code", "said"),
    [
        ("add", '{"nam": "a"}', "default", 1, "items[0]: add: name: is required"),
        ("ad", '{"name": "a"}', "default", 3, "no tool named 'ad'"),
        ("add", '{"name": "a"}', "nightli", 2, "did you mean 'nightly'?"),
    ],
)
def test_a_batch_that_an_agent_starts_wrongly_is_refused_whole(
    home: Albert, tool: str, item: str, queue: str, code: int, said: str
) -> None:
    refused = home("run", "start_batch", f"tool={tool}", f"items=[{item}]", f"queue={queue}")
    assert (refused.code, said in refused.err) == (code, True), refused.err
    assert home("runs", "--json").document()["runs"] == []


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ("", "there are no items"),
        ('{"name": "a"}\n{"nam": "b"}\n', "line 2"),
        ('{"name": }\n\n{"nam": "b"}\n', "line 1: it is not JSON: Expecting value (column 10)\nline 3: "),
        ("[]\n", "line 1"),
    ],
)
def test_a_batch_with_a_wrong_item_is_refused_whole(home: Albert, items: str, said: str) -> None:
    home.write("items.jsonl", items)
    done = home("batch", "add", "add", "items.jsonl")
    assert (done.code, said in done.err) == (2, True), done.err
    assert home("runs", "--json").document()["runs"] == []


def test_a_session_queues_no_more_than_it_may_request(home: Albert) -> None:
    (home.home / "config" / "governance.yaml").write_text(f"{RULES}loops: {{requests_per_hour: 2}}\n")
    env = {"ALBERT_SESSION": home("session", "new", "--json").document()["token"]}
    assert home("run", "add", "name=a.txt", "--queue", "default", "--priority", "99", env=env).code == 3
    for _ in range(2):
        queued(home, "add", "name=a.txt", env=env)
    refused = home("run", "add", "name=a.txt", "--queue", "default", env=env)
    assert (refused.code, "2 requests an hour" in refused.err) == (3, True), refused.err
    # Its runs are counted already, so both are executed.
    for run in home("runs", "--json").document()["runs"]:
        assert home("runs", "resume", run["run"], "--quiet").code == 0
