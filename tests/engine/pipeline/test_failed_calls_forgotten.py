"""What failed calls leave in memory. Python would look for cycles only after many of them, whatever their size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.frames import has_a_frame_with, no_collection
from tests.helpers.gate import until
from tests.helpers.governed import Governed, governing

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
    with no_collection():
        result = call(here)
        until(lambda: not has_a_frame_with(lambda value: MARK in repr(value)))
        assert result
