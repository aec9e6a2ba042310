"""A command that the kernel kills for memory is reported, although its last process may succeed."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from albert_tools.engine.sandbox.command.confinement import PATH, found
from albert_tools.engine.sandbox.command.output import Output
from albert_tools.engine.sandbox.command.run_command import run
from albert_tools.engine.sandbox.command.task import Bounds, Command, MiB
from albert_tools.engine.sandbox.command.view import View
from albert_tools.engine.sandbox.kernel.cgroups import ControlGroup
from tests.helpers.attacked import SOMEBODY
from tests.helpers.children import Child

#: `tail` stores all 160 MB, and is killed. `wc` counts nothing, and succeeds.
PIPELINE = ["bash", "-c", "head -c 160M /dev/zero | tail -n 1 | wc -c"]


def count(report: Callable[[Any], None], top: str, kind: str, group: ControlGroup | None) -> None:
    """Run the pipeline. With a group, run it in that group, as an ordinary user, who can't create another one."""
    found()
    bounds = Bounds(memory=48 * MiB)
    if group is not None:
        bounds = Bounds()
        group.take(os.getpid())
        os.chown(top, SOMEBODY, SOMEBODY)
        os.setgroups([])
        os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
        os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
        # After a change of user, the kernel denies this process its own /proc files.
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    opened, output = os.open(top, os.O_RDONLY | os.O_DIRECTORY), Output(1 << 16)
    command = Command(PIPELINE, View(top, top), opened, {"PATH": PATH}, 60.0, bounds, wanted=kind)
    ended = asyncio.run(run(command, output))
    report((ended.code, ended.over))


@pytest.fixture(params=["the command's group", "the service's group"])
def group(request: pytest.FixtureRequest) -> Iterator[ControlGroup | None]:
    """The group of the service if it can't create one for the command."""
    made = ControlGroup(128 * MiB, 1000) if request.param == "the service's group" else None
    yield made
    if made is not None:
        made.remove()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can create control groups on every system")
@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_a_process_that_the_kernel_kills_for_memory_is_reported(kind: str, group: ControlGroup | None) -> None:
    top = tempfile.mkdtemp(prefix="albert-memory-", dir="/tmp")
    try:
        child = Child(count, top, kind, group)
        assert child.hear() == (None, "memory")
        assert child.wait() == 0
    finally:
        shutil.rmtree(top)
