"""Enough stack to recurse over a tree, however deep the caller is.

The depth of trees is limited so that a walk fits Python's recursion limit. But the limit counts the caller's frames too. When the
rest is too little, the walk runs again on a new thread, which starts with an empty stack.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function without side effects: if it runs out of stack, it is called again on a new thread."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            pass
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
