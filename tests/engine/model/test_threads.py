"""Functions in threads: many at once, errors, cancelled callers."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from albert_tools.engine.model.threads import MAX_THREADS, THREAD_NAME, in_thread

NAME: ContextVar[str] = ContextVar("name", default="")


async def test_more_functions_than_threads_all_run() -> None:
    more, gate, running = MAX_THREADS * 2, threading.Event(), threading.Semaphore(0)

    def function() -> str:
        running.release()
        gate.wait()
        return threading.current_thread().name

    calls = [asyncio.ensure_future(in_thread(function, "f")) for _ in range(more)]
    for _ in range(MAX_THREADS):
        await asyncio.to_thread(running.acquire)
    assert not running.acquire(blocking=False)
    # One that has not begun is never called if its caller is cancelled.
    calls[-1].cancel()
    gate.set()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(ended[-1], asyncio.CancelledError)
    assert all(isinstance(name, str) for name in ended[:-1])
    assert sum(running.acquire(blocking=False) for _ in range(more)) == more - 1 - MAX_THREADS


async def test_a_function_has_the_context_of_its_caller_and_its_errors_arrive() -> None:
    NAME.set("caller")
    assert await in_thread(NAME.get, "f") == "caller"
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 / 0, "f")

    def cancels_itself() -> None:
        raise asyncio.CancelledError

    for _ in range(MAX_THREADS + 1):
        with pytest.raises(asyncio.CancelledError):
            await in_thread(cancels_itself, "f")
    assert await in_thread(lambda: 1, "f") == 1
    assert len([t for t in threading.enumerate() if t.name == THREAD_NAME]) <= MAX_THREADS


async def test_functions_that_nobody_waits_for_take_no_places() -> None:
    gate, began, ended = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)

    def function() -> None:
        began.release()
        gate.wait()
        ended.release()

    for _ in range(2):
        calls = [asyncio.ensure_future(in_thread(function, "f")) for _ in range(MAX_THREADS)]
        for _ in calls:
            assert await asyncio.to_thread(began.acquire, timeout=60)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    assert await in_thread(lambda: 1, "f") == 1
    gate.set()
    # They run on to their ends.
    for _ in range(MAX_THREADS * 2):
        assert await asyncio.to_thread(ended.acquire, timeout=60)
