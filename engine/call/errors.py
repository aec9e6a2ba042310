"""Convert faults of the service and texts from outside to short sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from albert_tools.engine.model.messages import brief


def notify(listener: Callable[..., None] | None, *arguments: str) -> None:
    """Call a listener of the application. Its exception goes to the event loop's handler and doesn't affect the program."""
    if listener is None:
        return
    try:
        listener(*arguments)
    except Exception as fault:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "a listener of a run failed", "exception": fault})


def describe_fault(fault: BaseException) -> str:
    """An exception as one short line without traceback. This works even if the exception can't produce its own text."""
    kind = type(fault).__name__
    try:
        text = str(fault)
    except Exception:
        return kind
    return f"{kind}: {shown(text, quoted=False)}" if text else kind


def shown(text: str, most: int = 300, *, quoted: bool = True) -> str:
    """A text from outside, shortened to `most` characters for a message. It is in quotation marks unless `quoted` is false."""
    short = brief(text, most).encode("utf-8", "backslashreplace").decode()
    return repr(short) if quoted else short
