"""The children of tests are what the tests rely on: alone in their process, and waited for no longer than said."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from tests.helpers.children import Child, Report


def tell(report: Report, words: list[str]) -> None:
    report(threading.active_count())
    for word in words:
        report(word)


def sleep(_: Report) -> None:
    time.sleep(600)


def fail(_: Report) -> None:
    raise ValueError("no")


def test_a_child_has_one_thread_and_tells_what_it_does() -> None:
    child = Child(tell, ["a", "b"])
    assert child.rest() == [1, "a", "b"]
    assert child.wait() == 0
    assert Child(fail).wait() == 1


def test_a_child_that_hangs_is_ended_and_told() -> None:
    with pytest.raises(AssertionError, match=r"the child that does sleep reports nothing for 0\.1 s"):
        Child(sleep).hear(0.1)
    child = Child(sleep)
    with pytest.raises(AssertionError, match=r"the child that does sleep has not ended in 0\.1 s"):
        child.wait(0.1)
    assert child.wait() == -signal.SIGKILL
    assert not Path(f"/proc/{child.pid}").exists()
