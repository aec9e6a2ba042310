"""Runs functions in threads, as `asyncio.to_thread` does, in about half the time for a short function.

A thread that has nothing to do keeps its queue among the idle ones, so a call takes one step there and one back. The threads are
daemons: a function that never returns does not prevent the end of the process, and its thread is replaced by another.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.turns import CLIENT

_T = TypeVar("_T")

#: The most threads with functions that somebody waits for. Further functions wait. The most threads in all.
MAX_THREADS, MAX_LEFT = 32, 512
#: The most functions of one client that run though nobody waits for them any more. The owner has no such limit.
MAX_LEFT_OF_CLIENT = 64
THREAD_NAME = "albert-function"


class _Job:
    def __init__(self, function: Callable[[], Any], future: asyncio.Future[Any], name: str) -> None:
        self.run = copy_context().run
        self.function = function
        self.name, self.client = name, CLIENT.get()
        self.loop = future.get_loop()
        self.future = future
        #: Whether it has ended; whether its thread is replaced, because nobody waits for the function any more.
        self.ended = self.is_replaced = False


class _Threads:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Job]] = []
        self._waiting: deque[_Job] = deque()
        self._number = self._left = 0
        #: The functions that run though nobody waits for them any more.
        self._running_on: set[_Job] = set()

    def running_on(self) -> dict[str, int]:
        with self._lock:
            return dict(Counter(job.name for job in self._running_on))

    def take(self, job: _Job) -> None:
        with self._lock:
            if job.client and sum(other.client == job.client for other in self._running_on) >= MAX_LEFT_OF_CLIENT:
                raise Failure(
                    "timeout",
                    f"{MAX_LEFT_OF_CLIENT} earlier calls of this session, and of those around and within it, still run after their "
                    f"time, so {job.name} did not begin",
                    hint="call it again when some of them have ended",
                    retryable=True,
                )
            if self._idle:
                self._idle.pop().put(job)
            elif self._number < MAX_THREADS:
                self._start(job)
            else:
                self._waiting.append(job)

    def leave(self, job: _Job) -> None:
        """Nobody waits for a function any more."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
            elif not job.ended:
                self._running_on.add(job)
                if self._number + self._left < MAX_LEFT:
                    job.is_replaced = True
                    self._left += 1
                    self._number -= 1
                    if self._waiting:
                        self._start(self._waiting.popleft())

    def _start(self, job: _Job) -> None:
        self._number += 1
        jobs: SimpleQueue[_Job] = SimpleQueue()
        jobs.put(job)
        threading.Thread(target=self._work, args=(jobs,), name=THREAD_NAME, daemon=True).start()

    def _work(self, jobs: SimpleQueue[_Job]) -> None:
        while True:
            job = jobs.get()
            result, error = None, None
            try:
                if not job.future.cancelled():
                    result = job.run(job.function)
            except BaseException as raised:
                error = raised
            with self._lock:
                job.ended = True
                self._running_on.discard(job)
                if job.is_replaced:
                    self._left -= 1
                    return
                if self._waiting:
                    jobs.put(self._waiting.popleft())
                else:
                    self._idle.append(jobs)
            with suppress(RuntimeError):  # the loop was closed
                job.loop.call_soon_threadsafe(_settle, job.future, result, error)
            del job, result, error


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return  # it was cancelled
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


_threads = _Threads()


def _after_fork() -> None:
    # The child has none of the threads.
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def running_on() -> dict[str, int]:
    """How many functions still run that nobody waits for any more, after a time limit for example: by name."""
    return _threads.running_on()


async def in_thread(function: Callable[[], _T], name: str) -> _T:
    """What a function returns, called in a thread with the present context variables. If the caller is cancelled, a function that
    has begun runs on, and `running_on` counts it under `name`. It must not raise StopIteration.

    Raises:
        Failure: `timeout`: too many functions of the same client run on.
    """
    future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
    job = _Job(function, future, name)
    _threads.take(job)
    try:
        return await future
    except asyncio.CancelledError:
        _threads.leave(job)
        raise
