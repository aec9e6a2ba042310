"""Faults and strangers' texts, as sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief


def tell(listener: Callable[..., None] | None, *what: str) -> None:
    """Tell a listener. One that fails is the application's trouble, not the program's: it goes to the loop's handler."""
    if listener is None:
        return
    try:
        listener(*what)
    except Exception as fault:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "a listener of a run failed", "exception": fault})


def unjudged(fault: Exception) -> Failure:
    """The denial that a fault of ours comes to, while a call is judged."""
    return Failure(
        "governance_unavailable",
        f"the call can't be judged, so it is denied: {told(fault)}",
        hint="this is a fault of the service or of what it was given, not of the tool",
        rule="fault",
    )


def told(fault: BaseException) -> str:
    """An exception in a line: no traceback, bounded, whatever its own text does."""
    kind = type(fault).__name__
    try:
        text = str(fault)
    except Exception:
        return kind
    return f"{kind}: {shown(text, quoted=False)}" if text else kind


def shown(text: str, most: int = 300, *, quoted: bool = True) -> str:
    """A text of somebody else's in a message: bounded, and in quotation marks unless said otherwise."""
    short = brief(text, most).encode("utf-8", "backslashreplace").decode()
    return repr(short) if quoted else short
