"""What failed calls leave in memory. Python would look for cycles only after many of them, whatever their size."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from tests.helpers.governed import Governed, governing
from tests.surfaces.conftest import wait_until

MARK = "an argument of a call that fails"
PROGRAM = f"""
    for path in ["one", "two"]:
        try:
            tools.write_file(path=path, content={MARK!r})
        except ToolError:
            pass
        try:
            tools.read_file(path={MARK!r})
        except ToolError:
            pass
    return 1
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Governed]:
    with governing(tmp_path) as make:
        yield make()


def kept() -> list[FrameType]:
    """The functions that have ended, and still have the arguments in a variable."""
    frames = [
        each for each in gc.get_objects() if isinstance(each, FrameType) and "albert_tools" in each.f_code.co_filename
    ]
    return [each for each in frames if any(MARK in repr(value) for value in [*each.f_locals.values()])]


@pytest.mark.parametrize(
    "call",
    [
        lambda here: here.error("read_file", path=MARK),
        lambda here: here.error("read_file", path="a", other=MARK),
        lambda here: here.error("no_such_tool", path=MARK),
        lambda here: here.composite(PROGRAM.strip()),
        lambda here: here.service.invoke("run_source", {"source": MARK}).error,
        lambda here: here.service.invoke("define_tool", {"source": MARK}, session="no such token").error,
    ],
    ids=["not found", "wrong argument", "unknown tool", "within a program", "source", "session"],
)
def test_a_failed_call_leaves_no_arguments(here: Governed, call: Callable[[Governed], object]) -> None:
    assert here.value("list_directory", path=".") is not None
    gc.collect()
    gc.disable()
    try:
        result = call(here)
        wait_until(lambda: not kept())
        assert result
    finally:
        gc.enable()
