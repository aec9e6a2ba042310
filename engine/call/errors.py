"""Faults of the service and other people's texts, as short sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief


def notify(listener: Callable[..., None] | None, *arguments: str) -> None:
    """Call a listener of the application. Its exception goes to the loop's handler and doesn't disturb the program."""
    if listener is None:
        return
    try:
        listener(*arguments)
    except Exception as fault:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "a listener of a run failed", "exception": fault})


def cannot_authorize(fault: Exception) -> Failure:
    """The denial of a call, after a fault of the service while it was judged."""
    return Failure(
        "governance_unavailable",
        f"the call can't be judged, so it is denied: {describe_fault(fault)}",
        hint="this is a fault of the service or of its configuration, not of the tool",
        rule="fault",
    )


def describe_fault(fault: BaseException) -> str:
    """An exception in one bounded line, without traceback, even if its own text can't be made."""
    kind = type(fault).__name__
    try:
        text = str(fault)
    except Exception:
        return kind
    return f"{kind}: {shown(text, quoted=False)}" if text else kind


def shown(text: str, most: int = 300, *, quoted: bool = True) -> str:
    """Another's text for a message: at most `most` characters, in quotation marks unless told otherwise."""
    short = brief(text, most).encode("utf-8", "backslashreplace").decode()
    return repr(short) if quoted else short
