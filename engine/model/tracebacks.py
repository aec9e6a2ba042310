"""Lets errors keep nothing in memory."""

from __future__ import annotations


def forget(error: BaseException, caught: BaseException | None = None) -> None:
    """Remove the tracebacks of an error and of those before it.

    A variable of a function in a traceback often is the error itself. Then both stay in memory until Python looks for cycles,
    together with the arguments of a call, of up to 100 MB. The variables can't be cleared instead: a coroutine that has caught an
    error goes on. `caught` is an error that the caller is handling, and is left as it is.
    """
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if each is None or each is caught or id(each) in seen:
            continue
        seen.add(id(each))
        # Its class can forbid to set attributes.
        BaseException.with_traceback(each, None)
        left += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            left += each.exceptions
