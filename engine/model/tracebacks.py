"""Lets errors keep nothing in memory."""

from __future__ import annotations


def forget(error: BaseException) -> None:
    """Let an error refer to none of the functions that it has passed, and to no other error.

    A variable of such a function often is the error itself. Then both stay in memory until Python looks for cycles, together with
    the arguments of a call, of up to 100 MB. The variables themselves can't be cleared: a coroutine that has caught the error goes
    on, and the errors before this one are those of others.
    """
    error.__traceback__ = error.__cause__ = error.__context__ = None
