"""The primitives of the family `system` on this machine: metrics, processes, logs, the checkup, clock and randomness."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from albert_tools import ToolService, checkup
from albert_tools.builtins.system import log_sources, metrics, program_output
from albert_tools.builtins.system.log_sources import Journald, MacOS, SyslogLines, journal_entry
from albert_tools.builtins.system.time_and_random import current_time, sleep
from albert_tools.engine.model.primitive import call_primitive
from albert_tools.engine.model.validation import violations
from albert_tools.engine.sandbox.worker import self_test
from tests.helpers.catalogue_rows import Row, reading
from tests.helpers.governed import Governed
from tests.surfaces.conftest import Albert

Make = Callable[..., Governed]


CATALOGUE = {
    "current_time": reading(),
    "sleep": Row({"seconds": 0}, slow={"seconds": 60}),
    "random_bytes": reading({"count": 4}),
    "system_metrics_snapshot": reading(what="system metrics"),
    "check_process_health": reading({"pid": 1}, what="processes"),
    "read_system_logs": reading({"lines": 5}, what="syslog log"),
    "self_check": reading({"trials": False}, what="installation"),
}


@pytest.fixture
def home(govern: Make) -> Governed:
    return govern()


def program(path: Path, text: str) -> str:
    """An executable script."""
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{text}\n")
    path.chmod(0o755)
    return str(path)


# Randomness and time.


@pytest.mark.parametrize("count", [1, 16, 65536])
def test_random_bytes(home: Governed, count: int) -> None:
    first, second = (home.value("random_bytes", count=count) for _ in range(2))
    assert len(bytes.fromhex(first)) == count
    assert first == first.lower()
    assert count < 16 or first != second
    assert len(base64.b64decode(home.value("random_bytes", count=count, encoding="base64"), validate=True)) == count


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "rule"),
    [
        ("random_bytes", {"count": 0}, "count", "minimum"),
        ("random_bytes", {"count": 65537}, "count", "maximum"),
        ("random_bytes", {"count": 1, "encoding": "latin-1"}, "encoding", "enum"),
        ("sleep", {"seconds": -1}, "seconds", "minimum"),
        ("sleep", {"seconds": 60.5}, "seconds", "maximum"),
        ("check_process_health", {}, "pid", "required"),
        ("check_process_health", {"pid": 1, "name": "a"}, "name", "excludes"),
        ("check_process_health", {"pid": 0}, "pid", "minimum"),
        ("check_process_health", {"pid": 2**31}, "pid", "maximum"),
        ("check_process_health", {"name": ""}, "name", "min_length"),
        ("check_process_health", {"name": "x" * 257}, "name", "max_length"),
        ("self_check", {"trials": "yes"}, "trials", "type"),
        ("read_system_logs", {"lines": 0}, "lines", "minimum"),
        ("read_system_logs", {"lines": 1001}, "lines", "maximum"),
        ("read_system_logs", {"since_seconds": 0}, "since_seconds", "minimum"),
        ("read_system_logs", {"since_seconds": 1e9}, "since_seconds", "maximum"),
        ("read_system_logs", {"unit": "-u"}, "unit", "pattern"),
        ("read_system_logs", {"unit": "a b"}, "unit", "pattern"),
        ("read_system_logs", {"unit": 'a" or "'}, "unit", "pattern"),
        ("read_system_logs", {"unit": "*"}, "unit", "pattern"),
        ("read_system_logs", {"unit": "x" * 257}, "unit", "max_length"),
        ("read_system_logs", {"pattern": "x" * 1001}, "pattern", "max_length"),
        ("read_system_logs", {"source": "windows"}, "source", "enum"),
    ],
)
def test_each_bound(govern: Make, tool: str, arguments: dict[str, Any], field: str, rule: str) -> None:
    broken = govern(governance={"allow": ["read_system_logs"]}).broken(tool, arguments)
    assert [f for f, _ in broken] == [field]
    assert [r for _, r in broken] == [rule]


async def test_current_time(context: Any) -> None:
    now = await call_primitive(current_time, {}, context)
    moment = datetime.fromisoformat(now["iso"])
    assert moment.utcoffset() == timedelta(0)
    assert abs(moment.timestamp() - now["unix"]) < 0.001
    assert abs(datetime.now(UTC) - moment) < timedelta(seconds=10)


async def test_sleep(context: Any) -> None:
    assert await call_primitive(sleep, {"seconds": 0.01}, context) is None
    schema = sleep.definition.parameters_schema()
    assert violations({"seconds": 60}, schema) == []
    assert violations({"seconds": 60.1}, schema)
    assert violations({"seconds": -1}, schema)


async def test_sleep_is_cancelled(home: Governed) -> None:
    async with ToolService.open(home=home.home, workspace=home.work) as service:
        task = asyncio.create_task(service.invoke("sleep", {"seconds": 60}))
        while not service.runs.under_way():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [e.data["code"] for e in await service.records(["call"])] == ["cancelled"]
        assert service.runs.under_way() == []


def test_a_timeout_of_the_rules_applies(govern: Make) -> None:
    home = govern(governance={"tools": {"sleep": {"timeout_seconds": 0.2}}})
    assert home.error("sleep", seconds=60).code == "timeout"


# Metrics.


def test_a_snapshot(home: Governed) -> None:
    found = home.value("system_metrics_snapshot")
    memory = psutil.virtual_memory()
    assert found["memory"]["total_bytes"] == memory.total
    assert 0 < found["memory"]["available_bytes"] <= memory.total
    assert found["cpu"]["logical_cores"] == psutil.cpu_count()
    assert 0 <= found["cpu"]["percent"] <= 100
    assert found["disk"]["total_bytes"] == psutil.disk_usage(str(home.work)).total
    assert found["processes"] > 0
    assert abs(found["unix"] - time.time()) < 60
    assert abs(found["uptime_seconds"] - (time.time() - psutil.boot_time())) < 60
    assert found["load"] is None or set(found["load"]) == {"one", "five", "fifteen"}
    assert home.effects("system_metrics_snapshot")[0]["kind"] == "read"


async def test_graphics_cards_are_read_from_the_output_of_their_driver(tmp_path: Path) -> None:
    # The output of `nvidia-smi` for these options.
    printed = (
        "NVIDIA A100-SXM4-80GB, 37, 81920, 1024, 41\\nTesla, the old one, [N/A], 15360, 0, [Not Supported]\\nnonsense"
    )
    found = await metrics.gpus(program(tmp_path / "smi", f"assert '--format=csv' in sys.argv[2]; print('{printed}')"))
    assert found[0] == {
        "name": "NVIDIA A100-SXM4-80GB",
        "percent": 37.0,
        "memory_total_bytes": 80 * 1024**3,
        "memory_used_bytes": 1024**3,
        "temperature_celsius": 41.0,
    }
    assert (found[1]["name"], found[1]["percent"], found[1]["temperature_celsius"]) == (
        "Tesla, the old one",
        None,
        None,
    )
    assert len(found) == 2


async def test_a_driver_that_fails_or_hangs_gives_no_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "GPU_SECONDS", 0.3)
    pid = tmp_path / "pid"
    hangs = program(tmp_path / "hangs", f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    failing = program(
        tmp_path / "fails", "print('NVIDIA-SMI has failed because it could not talk to the driver'); sys.exit(9)"
    )
    for path in (hangs, failing, str(tmp_path / "missing")):
        assert await metrics.gpus(path) == []
    if pid.exists():
        assert not psutil.pid_exists(int(pid.read_text())) or psutil.Process(int(pid.read_text())).name() == ""
    assert program_output.found("no-such-program") is None


# Processes.


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process whose command line and environment contain secrets."""
    process = subprocess.Popen(["sleep", "300.5"], env={"PATH": os.environ["PATH"], "API_KEY": "hunter22"})
    yield process
    process.kill()
    process.wait()


def test_a_process_by_its_id_and_by_its_name(home: Governed, sleeper: subprocess.Popen[bytes]) -> None:
    found = home.value("check_process_health", pid=sleeper.pid)
    assert (found["running"], found["count"], found["truncated"]) == (True, 1, False)
    (process,) = found["processes"]
    assert (process["pid"], process["name"], process["own"], process["threads"]) == (sleeper.pid, "sleep", True, 1)
    assert process["status"] == "sleeping"
    assert 0 <= process["age_seconds"] < 300
    assert process["memory_bytes"] > 0
    assert "hunter22" not in json.dumps(found)
    assert "300.5" not in json.dumps(found)
    assert sleeper.pid in [p["pid"] for p in home.value("check_process_health", name="sleep")["processes"]]
    ages = [p["age_seconds"] for p in home.value("check_process_health", name="sleep")["processes"]]
    assert ages == sorted(ages, reverse=True)
    assert home.effects("check_process_health")[0]["kind"] == "read"


def test_a_stopped_process_and_a_dead_one(home: Governed, sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 20
    while (told := home.value("check_process_health", pid=sleeper.pid))["processes"][0]["status"] != "stopped":
        assert time.monotonic() < deadline, told
    sleeper.kill()
    while psutil.Process(sleeper.pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
    found = home.value("check_process_health", pid=sleeper.pid)
    assert (found["running"], found["processes"][0]["status"]) == (False, "zombie")
    sleeper.wait()
    assert home.value("check_process_health", pid=sleeper.pid) == {
        "running": False,
        "count": 0,
        "processes": [],
        "truncated": False,
    }
    assert home.value("check_process_health", name="no such process")["running"] is False


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_process_of_another_user(home: Governed) -> None:
    process = subprocess.Popen(["sleep", "300"], user=65534)
    try:
        assert home.value("check_process_health", pid=process.pid)["processes"][0]["own"] is False
    finally:
        process.kill()
        process.wait()


# Logs.

KEY = "sk-live-abcdefghij1234567890"


@pytest.fixture
def logged(govern: Make, tmp_path: Path) -> tuple[Governed, Path]:
    """A home whose owner allows the log and names the file."""
    path = tmp_path / "syslog"
    settings = {"primitives": {"read_system_logs": {"files": [str(path)]}}}
    return govern(governance={"allow": ["read_system_logs"], **settings}), path


def stamp(seconds_ago: float, form: str = "%b %e %H:%M:%S") -> str:
    return (datetime.now() - timedelta(seconds=seconds_ago)).strftime(form)


def test_a_syslog_file(logged: tuple[Governed, Path]) -> None:
    home, path = logged
    iso = (datetime.now(UTC) - timedelta(seconds=20)).isoformat()
    path.write_text(
        f"{stamp(90_000)} host old[1]: too old\n"
        f"{stamp(300)} host sshd[42]: Accepted publickey for ada\n"
        f"<12>{stamp(200)} host cron: it ran\n"
        f"{iso} host kernel: eth0: link up\n"
        "no known form\n"
    )
    found = home.value("read_system_logs")
    assert (found["source"], found["truncated"]) == ("syslog", False)
    assert [(e["unit"], e["pid"], e["level"], e["message"]) for e in found["entries"]] == [
        ("sshd", 42, None, "Accepted publickey for ada"),
        ("cron", None, "warning", "it ran"),
        ("kernel", None, None, "eth0: link up"),
        (None, None, None, "no known form"),
    ]
    when = datetime.fromisoformat(found["entries"][0]["time"])
    assert abs((datetime.now(UTC) - when).total_seconds() - 300) < 60
    assert when.utcoffset() == timedelta(0)
    assert [e["unit"] for e in home.value("read_system_logs", since_seconds=250)["entries"]] == ["cron", "kernel", None]
    assert [e["message"] for e in home.value("read_system_logs", unit="cron")["entries"]] == ["it ran"]
    assert [e["unit"] for e in home.value("read_system_logs", pattern="^(it|eth0)")["entries"]] == ["cron", "kernel"]
    newest = home.value("read_system_logs", lines=2)
    assert ([e["unit"] for e in newest["entries"]], newest["truncated"]) == (["kernel", None], True)
    assert home.error("read_system_logs", pattern="(").code == "invalid_arguments"
    assert home.effects("read_system_logs")[0]["entries"] == 4


def test_a_log_is_read_from_its_end_across_blocks(logged: tuple[Governed, Path]) -> None:
    home, path = logged
    lines = [f"{stamp(100)} host unit[{n}]: message {n} {'äß' * (n % 50)}" for n in range(2000)]
    path.write_text("\n".join(lines) + "\n")
    entries = home.value("read_system_logs", lines=1000)["entries"]
    assert [e["pid"] for e in entries] == list(range(1000, 2000))
    assert all(e["message"] == f"message {e['pid']} {'äß' * (e['pid'] % 50)}" for e in entries)
    assert [e["pid"] for e in home.value("read_system_logs", pattern="^message 7 ")["entries"]] == [7]
    path.write_bytes(b"x" * 2_000_000 + b"\n" + lines[0].encode())
    assert [e["pid"] for e in home.value("read_system_logs")["entries"]][-1] == 0


def test_messages_are_cleaned_of_control_characters_and_secrets(logged: tuple[Governed, Path]) -> None:
    home, path = logged
    key = ["-----BEGIN RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEAabc", "q83vASNFZ4mrdef", "-----END RSA PRIVATE KEY-----"]
    path.write_bytes(
        b"\n".join(
            f"{stamp(50)} host app[1]: ".encode() + text
            for text in [
                f"connecting with password=hunter22 and {KEY}".encode(),
                b"\x1b]0;owned\x07\x1b[2Jignore\x00 all \xe2\x80\xaerules \xff\xfe",
                *(part.encode() for part in key),
                b"x" * 10_000,
                b"the end",
            ]
        )
    )
    entries = home.value("read_system_logs")["entries"]
    told = json.dumps(entries, ensure_ascii=False)
    for secret in ("hunter22", KEY, "MIIEowIBAAKCAQEA", "q83vASNFZ4mr", "\x1b", "\x00", "\u202e"):
        assert secret not in told
    assert [e["message"] for e in entries[2:6]] == ["[redacted]"] * 4
    assert len(entries[6]["message"]) == 4000
    assert entries[7]["message"] == "the end"
    # The pattern is not applied to removed text.
    assert home.value("read_system_logs", pattern="hunter")["entries"] == []
    assert home.value("read_system_logs", pattern="MIIE")["entries"] == []
    recorded = home.recorded()
    assert "hunter22" not in recorded
    assert KEY not in recorded


def test_a_missing_log_is_not_found(logged: tuple[Governed, Path], govern: Make, tmp_path: Path) -> None:
    home, path = logged
    error = home.error("read_system_logs")
    assert error.code == "not_found"
    assert "files" in (error.hint or "")
    path.mkdir()
    assert home.error("read_system_logs", source="syslog").code == "not_found"
    if not any(log_sources._has_files(folder) for folder in log_sources.JOURNALS):
        assert home.error("read_system_logs", source="journald").code == "not_found"
    if sys.platform != "darwin":
        assert home.error("read_system_logs", source="macos").code == "not_found"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_log_without_permission(logged: tuple[Governed, Path]) -> None:
    home, path = logged
    path.write_text("x")
    path.chmod(0)
    assert home.error("read_system_logs").code == "io_error"


def test_logs_are_off_until_the_owner_allows_them(home: Governed) -> None:
    error = home.error("read_system_logs")
    assert (error.code, error.rule) == ("permission_denied", "gated")


async def all_of(log: Any, since: float = 0.0, unit: str = "") -> list[Any]:
    return [entry async for entry in log.entries(since, unit)]


async def test_the_journal_in_its_printed_form(tmp_path: Path) -> None:
    entries = [
        {
            "__REALTIME_TIMESTAMP": "1700000000123456",
            "PRIORITY": "3",
            "_PID": "7",
            "_SYSTEMD_UNIT": "a.service",
            "MESSAGE": "oops",
        },
        {"SYSLOG_IDENTIFIER": "b", "MESSAGE": [104, 105, 255]},
        {"_COMM": "c", "MESSAGE": None, "PRIORITY": "99", "_PID": "x", "__REALTIME_TIMESTAMP": "9" * 30},
        {"MESSAGE": ["one", "two"]},
    ]
    lines = "\\n".join(json.dumps(e).replace("\\", "\\\\").replace("'", "") for e in entries)
    told = tmp_path / "argv"
    path = program(
        tmp_path / "journalctl",
        f"open({str(told)!r}, 'w').write(' '.join(sys.argv[1:])); print('''{lines}\\nno json''')",
    )
    found = await all_of(Journald(path), 1000.9, "a.service")
    assert found[0] == {
        "time": "2023-11-14T22:13:20.123456+00:00",
        "unit": "a.service",
        "level": "error",
        "pid": 7,
        "message": "oops",
    }
    assert [e["message"] for e in found[1:]] == ["hi\ufffd", "", "one\ntwo"]
    assert (found[2]["level"], found[2]["pid"], found[2]["time"]) == (None, None, None)
    argv = told.read_text().split()
    assert {"--reverse", "--since=@1000", "--unit=a.service"} <= set(argv)
    await all_of(Journald(path), 0, "sshd")
    assert "--identifier=sshd" in told.read_text()
    assert journal_entry(b"[]") is None


@pytest.mark.skipif(program_output.found("journalctl") is None, reason="there is no journalctl")
async def test_the_installed_journalctl_accepts_the_options() -> None:
    program = program_output.found("journalctl")
    assert program is not None
    for unit in ("", "ssh.service", "sshd"):
        for entry in (await all_of(Journald(program), time.time() - 60, unit))[:5]:
            assert set(entry) == {"time", "unit", "level", "pid", "message"}
    options = ["-o", "json", "--no-pager", "--quiet", "--reverse", "--all", "--since=@0", "--unit=a.b"]
    done = subprocess.run([program, *options], capture_output=True)
    assert b"unrecognized" not in done.stderr
    assert b"invalid" not in done.stderr.lower()


async def test_the_macos_log_in_its_printed_form(tmp_path: Path) -> None:
    entry = {
        "timestamp": "2023-11-14 23:13:20.123456+0100",
        "messageType": "Error",
        "processImagePath": "/usr/libexec/wifid",
        "processID": 9,
        "eventMessage": "no wifi",
    }
    told = tmp_path / "argv"
    text = f"open({str(told)!r}, 'w').write(repr(sys.argv[1:])); print('''{json.dumps(entry)}\\n{{\"count\":1,\"finished\":1}}''')"
    (found,) = await all_of(MacOS(program(tmp_path / "log", text)), 0.0, "wifid")
    assert found == {
        "time": "2023-11-14T22:13:20.123456+00:00",
        "unit": "wifid",
        "level": "error",
        "pid": 9,
        "message": "no wifi",
    }
    assert "'process == \"wifid\"'" in told.read_text()


async def test_a_program_ends_when_nobody_reads_its_output_any_more(tmp_path: Path) -> None:
    from contextlib import aclosing

    pid = tmp_path / "pid"
    path = program(
        tmp_path / "endless",
        f"import os; open({str(pid)!r}, 'w').write(str(os.getpid()))\nwhile True: print('x' * 1000000)",
    )
    async with aclosing(program_output.lines_of([path])) as lines:
        async for line in lines:
            assert len(line) == program_output.MAX_LINE
            break
    assert not psutil.pid_exists(int(pid.read_text()))


def test_lines_without_a_year_get_the_latest_possible_one() -> None:
    now = datetime(2024, 3, 1, 12, tzinfo=UTC)
    lines = SyslogLines(now)
    years = []
    for text in (
        "Mar  1 11:00:00",
        "Feb 29 10:00:00",
        "Jan  2 00:00:00",
        "Dec 31 23:59:59",
        "Mar  2 00:00:00",
        "Dec  1 00:00:00",
    ):
        moment, _ = lines.entry(f"{text} host a: b")
        assert moment is not None
        years.append(datetime.fromtimestamp(moment, UTC).year)
    assert years == [2024, 2024, 2024, 2023, 2023, 2022]
    assert lines.entry("Feb 31 00:00:00 host a: b")[0] is None


# The checkup.


def test_a_checkup(home: Governed) -> None:
    found = home.value("self_check", trials=False)
    assert found["trials"] == []
    assert found["facts"]["workspace"] == str(home.work)
    assert {"version", "tools", "state", "rules", "saved", "confinement"} <= set(found["facts"])
    # A state folder that others can read is a problem, but the checkup does not fail.
    (home.home / "state").chmod(0o755)
    found = home.value("self_check", trials=False)
    assert found["ok"] is False
    assert "open to others" in found["problems"][0]
    (home.home / "state").chmod(0o700)
    assert stat.S_IMODE((home.home / "state").stat().st_mode) == 0o700
    assert home.effects("self_check")[0]["ok"] is True


def test_a_checkup_agrees_with_doctor(tmp_path: Path) -> None:
    albert = Albert(tmp_path)
    doctor = albert("doctor", "--json").document()
    found = albert("run", "--json", "self_check", "trials=false").document()["output"]
    assert set(found) == set(doctor)
    assert [t["name"] for t in doctor["trials"]] == [t.name for t in (*self_test.LIMITS, *self_test.FENCE)]
    same = set(doctor["facts"]) - {"private", "record", "runs"}
    assert {n: found["facts"][n] for n in same} == {n: doctor["facts"][n] for n in same}


def test_a_checkup_runs_the_trials(home: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some of the fast trials.
    monkeypatch.setattr(self_test, "LIMITS", self_test.LIMITS[-4:])
    monkeypatch.setattr(self_test, "FENCE", self_test.FENCE[:2])
    trials = home.value("self_check")["trials"]
    assert [t["name"] for t in trials] == [t.name for t in (*self_test.LIMITS, *self_test.FENCE)]
    assert [t["name"] for t in trials if not t["ok"]] == []


def test_checkups_are_rate_limited(home: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: bool) -> AsyncGenerator[checkup.Finding, None]:
        return
        yield

    monkeypatch.setattr(checkup, "_sandbox", nothing)
    codes = [r.error and r.error.code for r in (home.call("self_check", trials=False) for _ in range(31))]
    assert codes == [None] * 30 + ["rate_limited"]


# All trials.

READS = ["system_metrics_snapshot", "check_process_health", "self_check", "random_bytes", "current_time"]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "check_process_health": {"pid": 1},
    "self_check": {"trials": False},
    "random_bytes": {"count": 4},
    "sleep": {"seconds": 0},
}


@pytest.mark.parametrize("tool", [*READS, "sleep", "read_system_logs"])
def test_denied_by_rule_and_in_lockdown(govern: Make, tool: str) -> None:
    home = govern(governance={"deny": [tool], "allow": ["read_system_logs"]})
    error = home.error(tool, ARGUMENTS.get(tool, {}))
    assert (error.code, error.rule) == ("permission_denied", "deny")
    assert home.effects(tool) == []


def test_called_from_a_program(logged: tuple[Governed, Path]) -> None:
    home, path = logged
    path.write_text(f"{stamp(10)} host app[1]: hello\n")
    body = (
        "metrics = tools.system_metrics_snapshot()\n"
        "    log = tools.read_system_logs(lines=1)\n"
        "    health = tools.check_process_health(pid=pid)\n"
        "    well = tools.self_check(trials=False)\n"
        '    return [metrics["cpu"]["logical_cores"], log["entries"][0]["message"], health["running"], well["ok"],'
        " len(tools.random_bytes(count=3))]"
    )
    assert home.composite(body, "pid: int", pid=os.getpid()) == [psutil.cpu_count(), "hello", True, True, 6]


def test_called_from_the_command_line(tmp_path: Path) -> None:
    albert = Albert(tmp_path)
    assert albert("run", "--json", "system_metrics_snapshot").document()["output"]["processes"] > 0
    assert albert("run", "--json", "check_process_health", "pid=1").document()["output"]["running"] is True
    assert len(albert("run", "--json", "random_bytes", "count=4").document()["output"]) == 8
    assert albert("run", "read_system_logs").code == 3
    assert albert("run", "random_bytes", "count=0").code == 2
