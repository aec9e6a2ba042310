"""A new segment that a reader holds: its writer waits for as long as that may take, then says so, and may try again."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.store.log import segment
from albert_tools.store.log.log import Log
from tests.helpers.children import Child, Report

#: Seconds that a writer in these tests waits.
PATIENCE = 0.2


class Reader:
    """One that comes between the making of a segment and its locking, asks whether its writer lives, and is stopped just then.

    It lives in the writer's process, woken by the interpreter's audit of `flock`; its lock is as real as another process's.
    """

    def __init__(self, folder: Path, tries: int) -> None:
        self._folder = folder
        #: How often the writer tries in vain.
        self.tries = tries
        self._handle = -1
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "fcntl.flock" or not arguments[1] & fcntl.LOCK_EX:
            return
        if self._handle >= 0:
            self.tries -= 1
        elif self.tries:
            newest = max(self._folder.glob("*.log"))
            self._handle = os.open(newest, os.O_RDONLY)
            fcntl.flock(self._handle, fcntl.LOCK_SH)
        if not self.tries:
            self.go_on()

    def go_on(self) -> None:
        """Let go of the lock, and come no more."""
        self.tries = 0
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def append_beside_a_reader(report: Report, folder: Path, written: int, tries: int) -> None:
    segment.LOCK_PATIENCE = PATIENCE
    log = Log(folder, rotate_at=500)
    for i in range(written):
        log.append("step", {"i": i, "x": "y" * 200})
    reader = Reader(folder, tries)
    began = time.monotonic()
    for _ in range(2):
        try:
            log.append("step", {"i": written, "x": "y" * 200})
            report("ok")
        except Failure as failure:
            report((failure.code, failure.retryable, failure.message, time.monotonic() - began))
        reader.go_on()
        written += 1
    log.close()


# The first segment of a log, and one that follows another.
@pytest.mark.parametrize("written", [0, 1])
def test_a_reader_that_is_stopped_holds_the_writer_up_no_longer_than_it_may(folder: Path, written: int) -> None:
    child = Child(append_beside_a_reader, folder, written, sys.maxsize)
    (code, retryable, message, seconds), again = child.rest()
    assert child.wait() == 0
    assert (code, retryable) == ("io_error", True)
    assert (
        f"timed out after {PATIENCE:g} s waiting for another process that holds the log's new segment {folder}"
        in message
    )
    assert seconds > PATIENCE
    # It was nobody's fault who writes: the next is taken, and the file that was held is nothing strange.
    assert again == "ok"
    assert [e.data["i"] for e in Log(folder).entries()] == [*range(written), written + 1]
    assert Log(folder).verify().problems == ()


@pytest.mark.parametrize("written", [0, 1])
def test_a_reader_that_goes_on_is_waited_for(folder: Path, written: int) -> None:
    child = Child(append_beside_a_reader, folder, written, 5)
    assert child.rest() == ["ok", "ok"]
    assert child.wait() == 0
    assert [e.data["i"] for e in Log(folder).entries()] == list(range(written + 2))
    assert Log(folder).verify().ok
