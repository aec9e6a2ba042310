"""A writer waits while a reader has locked its new segment. After a timeout the writer reports a failure, and can try again."""

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

#: The timeout of a writer in these tests, in seconds.
PATIENCE = 0.2


class Reader:
    """A reader that locks a new segment before its writer does.

    The reader locks the segment to find out whether the writer lives, and then stops. It is in the writer's process: an audit
    hook for `flock` calls it. Its lock works like the lock of another process.
    """

    def __init__(self, folder: Path, tries: int) -> None:
        self._folder = folder
        #: The number of attempts of the writer that fail.
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
        """Release the lock, and do not lock again."""
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


# The first segment of a log, and a segment that follows another.
@pytest.mark.parametrize("written", [0, 1])
def test_a_reader_that_stops_delays_the_writer_only_until_the_timeout(folder: Path, written: int) -> None:
    child = Child(append_beside_a_reader, folder, written, sys.maxsize)
    (code, retryable, message, seconds), again = child.rest()
    assert child.wait() == 0
    assert (code, retryable) == ("io_error", True)
    assert (
        f"timed out after {PATIENCE:g} s waiting for another process that holds the log's new segment {folder}"
        in message
    )
    assert seconds > PATIENCE
    # The writer made no mistake, so its next append succeeds. Verification reports no problem with the locked file.
    assert again == "ok"
    assert [e.data["i"] for e in Log(folder).entries()] == [*range(written), written + 1]
    assert Log(folder).verify().problems == ()


@pytest.mark.parametrize("written", [0, 1])
def test_the_writer_waits_for_a_reader_that_goes_on(folder: Path, written: int) -> None:
    child = Child(append_beside_a_reader, folder, written, 5)
    assert child.rest() == ["ok", "ok"]
    assert child.wait() == 0
    assert [e.data["i"] for e in Log(folder).entries()] == list(range(written + 2))
    assert Log(folder).verify().ok
