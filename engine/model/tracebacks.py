"""Lets errors keep nothing in memory."""

from __future__ import annotations


def forget(error: BaseException, handled: BaseException | None = None) -> None:
    """Let an error, and those before it, refer neither to the functions that they have passed nor to each other.

    A variable of such a function often is one of these errors. Then all stay in memory until Python looks for cycles, together with
    the arguments of a call, of up to 100 MB. The variables themselves can't be cleared: a coroutine that has caught an error goes
    on. `handled` is the error that the caller of a call handles, and is left as it is.
    """
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and each is not handled:
            left += [each.__cause__, each.__context__]
            each.__traceback__ = each.__cause__ = each.__context__ = None
