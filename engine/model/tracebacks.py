"""Lets errors keep nothing in memory."""

from __future__ import annotations

import traceback


def forget(error: BaseException) -> None:
    """Clear the variables of the functions that an error, and those before it, have ended.

    Such a variable often is the error itself. Then both stay in memory until Python looks for cycles, together with the arguments
    of a call, of up to 100 MB.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__context__
