"""Room to recurse, whatever the caller left.

Trees are capped in depth so that walking one fits Python's recursion limit, which counts the caller's frames too. What
walks a tree is called with the limit's whole room when what is left proves too little: on a thread, whose count begins anew.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """A function without side effects, called once more with all the room there is when it runs out of stack."""

    @functools.wraps(function)
    def roomy(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            pass
        return _on_a_thread(lambda: function(*args, **kwargs))

    return roomy


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
