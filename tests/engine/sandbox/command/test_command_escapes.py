"""The attacks of a hostile command, under each confinement, as root and as an ordinary user. They fail and leave no traces.

The same probes succeed without confinement. This shows that they are real attacks.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.sandbox.command.confinement import found
from tests.helpers import probes
from tests.helpers.attacked import EXPENDABLE, SOMEBODY, attack, end_all_of
from tests.helpers.children import Child

#: Attacks that are not stopped, as the manual says.
NOT_STOPPED = {("landlock", "fill_the_temporary_folder")}

#: Probes that succeed without confinement, also for an ordinary user.
REAL = [
    "read_by_absolute_path",
    "read_through_a_link",
    "read_through_own_root",
    "read_through_any_process",
    "read_by_what_bash_reads_first",
    "read_environments",
    "read_what_rules_hide",
    "attach_shared_memory",
    "write_outside",
    "move_outside",
    "delete_outside",
    "make_things_outside",
    "change_mode_outside",
    "change_times_outside",
    "change_attributes_outside",
    "write_hooks",
    "replace_hooks",
    "swap_what_is_hidden_or_kept",
    "leave_a_program_that_becomes_its_owner",
    "send_from_a_pair_of_sockets",
    "signal_others_by_a_file",
    "slow_others",
    "limit_others",
    "connect_by_tcp",
    "send_by_udp",
    "connect_to_an_abstract_socket",
    "connect_to_a_socket_at_a_path",
    "outlive_the_command",
]


@pytest.fixture
def top() -> Iterator[Path]:
    """A folder that an ordinary user can reach. The test folders of pytest may be private."""
    made = Path(tempfile.mkdtemp(prefix="albert-attack-", dir="/tmp"))
    made.chmod(0o755)
    yield made.resolve()
    shutil.rmtree(made, ignore_errors=True)


IS_ROOT = os.getuid() == 0
#: The users that make the attacks. Only root can change to another user.
USERS = [pytest.param(0, id="oneself", marks=[pytest.mark.slow] if IS_ROOT else [])]
USERS += [pytest.param(SOMEBODY, id="somebody")] if IS_ROOT else []

CHUNKS = [sorted(probes.PROBES)[n::4] for n in range(4)]


@pytest.mark.parametrize("names", CHUNKS, ids=range(len(CHUNKS)))
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_every_probe_fails(kind: str, user: int, names: list[str], top: Path) -> None:
    assert kind in found().kinds, f"the tests need {kind}: {found().missing.get(kind)}"
    names = [name for name in names if (kind, name) not in NOT_STOPPED]
    child = Child(attack, str(top), kind, user, names)
    told = child.rest()
    assert child.wait() == 0
    assert sorted(name for name, *_ in told) == names
    assert {name: (wrong, ended, text) for name, wrong, ended, text in told if wrong} == {}
    # A probe that could not begin would prove nothing.
    assert {name: text for name, _, _, text in told if "Traceback" in text or "not found" in text} == {}


def test_an_endless_command_is_ended(top: Path) -> None:
    child = Child(
        attack, str(top), "bwrap", 0, ["outlive_the_timeout", "take_memory_across_children", "print_without_end"]
    )
    ended = {name: how for name, _, how, _ in child.rest()}
    assert ended["outlive_the_timeout"] == (None, "timeout")
    assert ended["take_memory_across_children"][1] in ("memory", None)
    assert ended["print_without_end"] == (0, None)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user, and these attacks are not made as oneself")
def test_the_probes_succeed_without_confinement(top: Path) -> None:
    try:
        child = Child(attack, str(top), None, EXPENDABLE, REAL)
        told: list[Any] = child.rest()
        assert child.wait() == 0
        assert [name for name, wrong, _, _ in told if not wrong] == []
        assert len(told) == len(REAL)
    finally:
        end_all_of(EXPENDABLE)
