"""Tell listeners of the application what happens, and quote texts from outside in messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from albert_tools.engine.model.messages import brief, encodable


def notify(listener: Callable[..., None] | None, *arguments: str) -> None:
    """Call a listener of the application. Its exception goes to the event loop's handler and doesn't affect the program."""
    if listener is None:
        return
    try:
        listener(*arguments)
    except Exception as fault:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "a listener of a run failed", "exception": fault})


def shown(text: str) -> str:
    """A text from outside in quotation marks, shortened for a message."""
    return repr(encodable(brief(text, 300)))
