"""Provide enough stack to recurse over a tree, for callers at any depth.

The depth of trees is limited, so a walk fits into Python's recursion limit. But the limit also counts the caller's frames. If the
remaining stack is too small, the walk runs again on a new thread, which starts with an empty stack.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Whether this process can start threads. A confined process can't; its own stack is almost empty.
can_start_threads = True


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function without side effects. If it exceeds the recursion limit, it is called again on a new thread."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            if not can_start_threads:
                raise
        return _on_a_thread(lambda: function(*args, **kwargs))

    return wrapper


def _on_a_thread(call: Callable[[], R]) -> R:
    returned: list[R] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return returned[0]
