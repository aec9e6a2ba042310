"""Child processes of tests: each has one thread, an exit code and a timeout."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from tests.helpers.children import Child, Parent, Report


def tell(report: Report, words: list[str]) -> None:
    report(threading.active_count())
    for word in words:
        report(word)


def sleep(_: Report) -> None:
    time.sleep(600)


def fail(_: Report) -> None:
    raise ValueError("no")


def test_a_child_has_one_thread_and_reports() -> None:
    child = Child(tell, ["a", "b"])
    assert child.rest() == [1, "a", "b"]
    assert child.wait() == 0
    assert Child(fail).wait() == 1


def test_a_hanging_child_is_killed() -> None:
    with pytest.raises(AssertionError, match=r"the child that does sleep reports nothing for 0\.1 s"):
        Child(sleep).hear(0.1)
    child = Child(sleep)
    with pytest.raises(AssertionError, match=r"the child that does sleep has not ended in 0\.1 s"):
        child.wait(0.1)
    assert child.wait() == -signal.SIGKILL
    assert not Path(f"/proc/{child.pid}").exists()


def test_forks_of_a_parent_report_and_end_like_children() -> None:
    with Parent(tell) as parent:
        first, second = parent.fork(["a"]), parent.fork(["b", "c"])
        assert (first.rest(), second.rest()) == ([1, "a"], [1, "b", "c"])
        assert (second.wait(), first.wait()) == (0, 0)
    with Parent(fail) as parent:
        assert parent.fork().wait() == 1
    with Parent(sleep) as parent:
        parent.fork().kill()
        with pytest.raises(AssertionError, match=r"the child that does sleep reports nothing for 0\.1 s"):
            parent.fork().hear(0.1)
