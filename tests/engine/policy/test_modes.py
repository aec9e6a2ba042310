"""The mode. Every process sees it, only permitted changes are made, and an unreadable mode means LOCKDOWN."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import threading
import time
from pathlib import Path

import pytest

from albert_tools import Failure
from albert_tools.engine.model.definition import MODES
from albert_tools.engine.policy.modes import NEXT, Modes, ModeState
from albert_tools.store.record.record import Record


def test_a_new_home_is_in_normal_and_has_no_file(tmp_path: Path) -> None:
    modes = Modes(tmp_path / "state" / "mode.json")
    assert modes.state() == ModeState("NORMAL")
    assert list(tmp_path.iterdir()) == []


def test_every_process_sees_a_change_at_its_next_read(tmp_path: Path) -> None:
    one, two = Modes(tmp_path / "mode.json"), Modes(tmp_path / "mode.json")
    assert two.mode == "NORMAL"
    one.switch("ALERT", "ada", "a drill")
    assert (two.mode, two.state().by, two.state().cause) == ("ALERT", "ada", "a drill")
    two.switch("NORMAL", "bob", "")
    assert one.mode == "NORMAL"
    (tmp_path / "mode.json").unlink()
    assert one.mode == "NORMAL"


@pytest.mark.parametrize(("before", "after"), list(itertools.product(MODES, MODES)))
def test_permitted_changes(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "mode.json"
    file.write_text(json.dumps({"mode": before, "since": "", "by": "x", "cause": ""}))
    modes = Modes(file)
    if before == after or after in NEXT[before]:  # type: ignore[index]
        assert modes.switch(after, "ada", "").mode == after  # type: ignore[arg-type]
        assert Modes(file).mode == after
    else:
        assert before == "LOCKDOWN"
        with pytest.raises(Failure, match="the mode can't change from LOCKDOWN to"):
            modes.switch(after, "ada", "")  # type: ignore[arg-type]
        assert Modes(file).mode == before


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="there is no mode 'CALM'"):
        Modes(tmp_path / "m").switch("CALM", "ada", "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"mode": "NORMAL"}', '{"mode": "CALM", "since": "", "by": "", "cause": ""}', "\x00\xff"]
)
def test_an_unreadable_mode_file_means_lockdown(text: str, tmp_path: Path) -> None:
    (tmp_path / "mode.json").write_text(text, encoding="latin-1")
    modes = Modes(tmp_path / "mode.json")
    assert modes.mode == "LOCKDOWN"
    assert modes.state().cause.startswith("the mode can't be read: ")
    modes.switch("RECOVERY", "ada", "mended")
    assert Modes(tmp_path / "mode.json").mode == "RECOVERY"


def test_a_folder_in_place_of_the_file_means_lockdown_and_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "mode.json").mkdir()
    modes = Modes(tmp_path / "mode.json")
    assert modes.mode == "LOCKDOWN"
    with pytest.raises(Failure, match=r"mode\.json' can't be written"):
        modes.switch("RECOVERY", "ada", "")


class World:
    """A clock that tests set, and the usage of disk and memory."""

    def __init__(self) -> None:
        self.now, self.disk, self.memory = 0.0, 10_000.0, 0.5

    def modes(self, file: Path) -> Modes:
        return Modes(file, lambda: self.now, free=lambda: (self.disk, self.memory))


def test_a_full_disk_degrades_until_enough_space_is_free(tmp_path: Path) -> None:
    world = World()
    modes = world.modes(tmp_path / "m.json")
    modes.look()
    world.disk = 50
    modes.look()
    assert modes.mode == "NORMAL"  # The last check was too short a time ago.
    world.now = 11
    modes.look()
    assert (modes.mode, modes.state().cause) == ("DEGRADED", "50 MiB of disk are free")
    world.now, world.disk = 22, 150
    modes.look()
    assert modes.mode == "DEGRADED"
    world.now, world.disk = 33, 250
    modes.look()
    assert modes.mode == "NORMAL"
    world.now, world.memory = 44, 0.01
    modes.look()
    assert modes.mode == "DEGRADED"


@pytest.mark.parametrize("mode", ["ALERT", "LOCKDOWN", "RECOVERY", "DEGRADED"])
def test_a_mode_set_by_a_person_stays(mode: str, tmp_path: Path) -> None:
    world = World()
    modes = world.modes(tmp_path / "m.json")
    modes.switch(mode, "ada", "")  # type: ignore[arg-type]
    for world.disk in (1, 10_000):
        world.now += 11
        modes.look()
        assert modes.mode == mode


def test_many_violations_of_any_process_switch_to_alert(tmp_path: Path) -> None:
    now = time.time()

    def violations(count: int, *, after: float) -> str:
        """Attempts by one process each. Returns the mode after them."""
        for _ in range(count):
            with Record(tmp_path / "record") as record:
                modes = Modes(tmp_path / "m.json", ledger=record, wall_clock=lambda: now + after)
                modes.violation()
        return modes.mode

    assert violations(19, after=0) == "NORMAL"
    assert violations(19, after=61) == "NORMAL"
    assert violations(1, after=61) == "ALERT"
    assert Modes(tmp_path / "m.json").state().by == "albert"
    # After a person has ended the alert, earlier attempts don't count again.
    Modes(tmp_path / "m.json").switch("NORMAL", "ada", "a drill")
    now -= 61
    assert violations(1, after=61) == "NORMAL"


def test_disk_and_memory_are_measured() -> None:
    disk, memory = Modes(Path("/nowhere/at/all/mode.json"))._measured()
    assert disk > 0
    assert 0 < memory < 1


def test_an_alert_never_overwrites_a_lockdown(tmp_path: Path) -> None:
    file = tmp_path / "mode.json"
    person = Modes(file)

    class Slow(Modes):
        """Simulates a person who orders a lockdown just after the mode was read."""

        def violation_and_lockdown(self) -> None:
            assert self.mode == "NORMAL"
            person.switch("LOCKDOWN", "ada", "now")
            self._automatic("ALERT", "too late")

    Slow(file).violation_and_lockdown()
    assert Modes(file).mode == "LOCKDOWN"


def test_a_lockdown_survives_concurrent_alerts(tmp_path: Path) -> None:
    file = tmp_path / "mode.json"
    for _ in range(10):
        file.unlink(missing_ok=True)
        agents = [Modes(file) for _ in range(4)]
        person = Modes(file)
        threads = [threading.Thread(target=a._automatic, args=("ALERT", "attempts")) for a in agents]
        threads.insert(2, threading.Thread(target=person.switch, args=("LOCKDOWN", "ada", "")))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Modes(file).mode == "LOCKDOWN"
        assert {m.mode for m in agents} == {"LOCKDOWN"}


def test_removing_the_file_does_not_end_a_lockdown(tmp_path: Path) -> None:
    file = tmp_path / "mode.json"
    one = Modes(file)
    one.switch("LOCKDOWN", "ada", "")
    file.unlink()
    assert (one.mode, one.state().cause) == ("LOCKDOWN", "the mode can't be read: its file is gone")
    assert one.mode == "LOCKDOWN"
    assert Modes(file).switch("RECOVERY", "ada", "").mode == "RECOVERY"
    assert one.mode == "RECOVERY"


def test_a_change_with_the_old_modification_time_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "mode.json"
    one = Modes(file)
    one.switch("RECOVERY", "ada", "")
    facts = file.stat()
    file.write_text(file.read_text().replace("RECOVERY", "LOCKDOWN"))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert one.mode == "LOCKDOWN"


def test_a_mode_that_can_not_be_stored_loosens_no_rule(tmp_path: Path) -> None:
    file = tmp_path / "state" / "mode.json"
    one = Modes(file)
    one.switch("RECOVERY", "ada", "")
    (tmp_path / "state" / ".mode.json-lock").unlink()
    (tmp_path / "state" / ".mode.json-lock").mkdir()
    with pytest.raises(Failure, match="can't be written"):
        one.switch("NORMAL", "ada", "")
    assert one.mode == "RECOVERY"
    assert one.switch("LOCKDOWN", "ada", "").mode == "LOCKDOWN"
    assert Modes(file).mode == "LOCKDOWN"


def test_a_lock_that_is_never_released_does_not_prevent_a_lockdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("albert_tools.engine.model.home_file.LOCK_SECONDS", 0.05)
    file = tmp_path / "mode.json"
    one = Modes(file)
    one.switch("NORMAL", "ada", "")
    with open(tmp_path / ".mode.json-lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        one._automatic("ALERT", "attempts")
        assert one.mode == "ALERT"
        assert Modes(file).mode == "NORMAL"
        assert Modes(file).switch("LOCKDOWN", "ada", "").mode == "LOCKDOWN"
    assert one.mode == "LOCKDOWN"


@pytest.mark.parametrize("mode", ["LOCKDOWN", "ALERT"])
def test_without_a_file_a_mode_that_can_not_be_stored_applies_to_this_process(tmp_path: Path, mode: str) -> None:
    (tmp_path / "state").write_text("in the way of the folder")
    one = Modes(tmp_path / "state" / "mode.json")
    if mode == "ALERT":
        one._automatic("ALERT", "attempts")
    else:
        with pytest.raises(Failure, match="can't be written"):
            one.switch("LOCKDOWN", "ada", "now")
    assert (one.mode, one.mode) == (mode, mode)
