"""Rules that change while a service runs. An edit applies as a whole or not at all. An edit with a mistake changes nothing."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.authority import rules_source
from albert_tools.engine.authority.rules_source import RulesSource
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.modes import Modes
from albert_tools.engine.policy.settings import Governance, read_governance
from albert_tools.store.record.record import Record

READ = ToolDefinition("read_file", "", (), {}, ("read",))


class Owner:
    """Edits both files, and reads what is recorded about changes of the rules."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.user, self.project = folder / "user.yaml", folder / "project.yaml"
        self.log = Record(folder / "record")
        self.source = RulesSource(self.user, self.project, ledger=self.log, **settings)
        self.modes = Modes(None)

    def denied(self) -> set[str] | str:
        """The calls that are denied now, or the message of the failure that denies everything."""
        found = self.source.in_force("/w", self.modes)
        return found.message if isinstance(found, Failure) else set(found.governance.denied)

    def denied_in_the_end(self, expected: set[str]) -> bool:
        """Wait until exactly `expected` is denied, for at most ten seconds. Returns whether it is."""
        end = time.monotonic() + 10
        while self.denied() != expected and time.monotonic() < end:
            time.sleep(0.005)
        return self.denied() == expected

    def recorded(self) -> list[dict[str, Any]]:
        return [entry.data for entry in self.log.entries(kinds=["policy"])]

    def events(self) -> list[str]:
        return [data["event"] for data in self.recorded()]


@pytest.fixture
def owner(tmp_path: Path) -> Any:
    made = Owner(tmp_path)
    yield made
    made.log.close()


def test_an_edit_applies_to_the_next_call(owner: Owner) -> None:
    assert owner.denied() == set()
    first = owner.source.current()
    owner.user.write_text("deny: [a]")
    assert owner.denied() == {"a"}
    owner.project.write_text("deny: [b]")
    assert owner.denied() == {"a", "b"}
    assert owner.events() == ["loaded"] * 3
    assert isinstance(first, Governance)
    revisions = [data["revision"] for data in owner.recorded()]
    assert revisions[0] == first.revision
    assert len(set(revisions)) == 3


def test_an_edit_with_the_same_length_and_timestamp_is_seen(owner: Owner) -> None:
    for n in range(100):
        owner.user.write_text(f"deny: [a{n % 2}]")
        owner.denied()
    assert owner.denied_in_the_end({"a1"})


def test_a_bad_edit_keeps_the_old_rules_and_is_reported_once(owner: Owner) -> None:
    owner.user.write_text("deny: [a]")
    owner.denied()
    rules = owner.source.in_force("/w", owner.modes)
    owner.user.write_text("deny: [a\n")
    for _ in range(3):
        assert owner.denied() == {"a"}
    assert owner.source.in_force("/w", owner.modes) is rules
    os.utime(owner.user)
    assert owner.denied() == {"a"}
    loaded, refused = owner.recorded()
    assert owner.events() == ["loaded", "refused"]
    assert refused["revision"] == loaded["revision"]
    assert "line 2" in refused["message"]
    assert owner.source.problem == refused["message"]
    # The rules are still the old ones, but the mistake is corrected.
    owner.user.write_text("deny:\n- a\n")
    assert owner.denied() == {"a"}
    assert owner.source.in_force("/w", owner.modes) is rules
    assert owner.source.problem is None
    assert owner.events() == ["loaded", "refused", "loaded"]


def test_a_mistake_in_the_projects_file_delays_an_edit_of_the_owners_file(owner: Owner) -> None:
    owner.user.write_text("deny: [a]")
    owner.denied()
    owner.user.write_text("deny: [b]")
    owner.project.write_text("dny: [c]")
    assert owner.denied() == {"a"}
    owner.project.write_text("deny: [c]")
    assert owner.denied() == {"b", "c"}


def test_without_usable_rules_everything_is_denied(owner: Owner) -> None:
    owner.user.write_text("dny: [a]")
    said = owner.denied()
    assert "did you mean 'deny'?" in said
    assert owner.denied() == said
    assert owner.events() == ["refused"]
    owner.user.write_text("deny: [a]")
    assert owner.denied() == {"a"}


@pytest.mark.parametrize("which", ["user", "project"])
def test_a_missing_file_loosens_no_rule(owner: Owner, which: str) -> None:
    file = getattr(owner, which)
    file.write_text("deny: [a]")
    assert owner.denied() == {"a"}
    file.unlink()
    assert owner.denied() == {"a"}
    assert owner.source.problem is not None
    assert "gone" in owner.source.problem
    # An edit of the other file does not remove the rules of the missing file.
    (owner.project if which == "user" else owner.user).write_text("deny: [b]")
    assert owner.denied() == {"a"}
    file.write_text("")
    assert owner.denied() == {"b"}
    assert owner.source.problem is None


def test_a_link_in_place_of_a_file_is_a_bad_edit(owner: Owner, tmp_path: Path) -> None:
    owner.user.write_text("deny: [a]")
    owner.denied()
    (tmp_path / "other").write_text("")
    owner.user.unlink()
    owner.user.symlink_to("other")
    assert owner.denied() == {"a"}
    assert "symbolic link" in str(owner.source.problem)


def test_a_required_file(tmp_path: Path) -> None:
    owner = Owner(tmp_path, required=True)
    assert "there is no file of rules" in owner.denied()
    owner.user.write_text("deny: [a]")
    assert owner.denied() == {"a"}


def test_a_project_tightens_the_rules_of_an_application(tmp_path: Path) -> None:
    project = tmp_path / "project.yaml"
    source = RulesSource(read_governance({"deny": ["a"]}), project)
    found = source.current()
    assert isinstance(found, Governance)
    assert found.denied == {"a"}
    project.write_text("deny: [b]")
    found = source.current()
    assert isinstance(found, Governance)
    assert found.denied == {"a", "b"}


def test_reading_the_rules_writes_no_entry(owner: Owner) -> None:
    owner.source.current()
    assert owner.recorded() == []
    owner.denied()
    assert len(owner.recorded()) == 1


def test_a_secret_in_a_mistake_is_not_recorded(owner: Owner) -> None:
    owner.user.write_text("allow: {ghp_0123456789abcdefghijklmnop: 1}\nghp_0123456789abcdefghijklmnop: 2\n")
    owner.denied()
    assert "ghp_" in str(owner.source.problem)
    assert owner.events() == ["refused"]
    assert "ghp_" not in str(owner.recorded())


def test_each_workspace_has_one_index_per_revision(owner: Owner) -> None:
    one, two = owner.source.in_force("/one", owner.modes), owner.source.in_force("/two", owner.modes)
    assert owner.source.in_force("/one", owner.modes) is one
    assert owner.source.in_force("/two", owner.modes) is two
    assert not isinstance(one, Failure)
    owner.user.write_text("tools: {read_file: {forbidden_paths: [/one/x]}}")
    new = owner.source.in_force("/one", owner.modes)
    assert not isinstance(new, Failure)
    assert new is not one
    # A call that began under the old rules ends under the old rules.
    assert one.authority.policy.paths.of(READ).judge("/one/x", "read") is None
    assert new.authority.policy.paths.of(READ).judge("/one/x", "read") is not None


def test_a_file_that_changes_all_the_time_changes_no_rule(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.user.write_text("deny: [a]")
    owner.denied()
    load = rules_source.load_governance

    def interrupted(*files: Any) -> Any:
        """The file is missing exactly while it is read."""
        owner.user.unlink()
        try:
            return load(*files)
        finally:
            owner.user.write_text("deny: [b]")

    monkeypatch.setattr(rules_source, "load_governance", interrupted)
    owner.user.write_text("deny: [c]")
    assert owner.denied() == {"a"}
    monkeypatch.undo()
    assert owner.denied() == {"b"}


def test_threads_never_see_a_partial_edit(owner: Owner) -> None:
    """Both files are replaced again and again. The denied calls always match one state of both files."""
    files = owner.user, owner.project

    def write(n: int) -> None:
        for file in files:
            new = file.with_suffix(".new")
            new.write_text(f"deny: [{file.stem}_{n}]")
            os.replace(new, file)

    write(0)
    wrong: list[Any] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = owner.denied()
            # Between the two writes, the owner's file is one edit ahead. Neither file is ever missing. On a busy machine, they may
            # change too often to be read.
            if found == "the rules change while they are read":
                continue
            if not (isinstance(found, set) and {name.rpartition("_")[0] for name in found} == {"user", "project"}):
                wrong.append(found)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for n in range(1, 20):
            write(n)
            time.sleep(0.002)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert owner.denied_in_the_end({"user_19", "project_19"})
    refused = [data["message"] for data in owner.recorded() if data["event"] == "refused"]
    assert not [message for message in refused if "while they are read" not in message]


def test_the_revision_identifies_the_rules() -> None:
    one = {"deny": ["a", "b"], "tools": {"x": {"forbidden_in_modes": ["NORMAL", "ALERT"], "rate_limit_per_hour": 3}}}
    same = {"tools": {"x": {"rate_limit_per_hour": 3, "forbidden_in_modes": ["ALERT", "NORMAL"]}}, "deny": ["b", "a"]}
    revision = read_governance(one).revision
    assert read_governance(same).revision == revision
    assert len(revision) == 64
    others = [
        {},
        {"deny": ["a"]},
        {**one, "limits": {"calls": 1}},
        {**one, "primitives": {"x": {"a": 1}}},
        {**one, "tools": {"x": {}}},
    ]
    found = {read_governance(other).revision for other in others}
    found.add(read_governance({}).tightened(read_governance(one)).revision)
    assert len(found | {revision}) == 7
