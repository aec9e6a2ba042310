"""A mistake on the command line, apart from what finds it, so that knowing it costs nothing."""

from __future__ import annotations


class Usage(Exception):
    """The command line can't be understood; `hint` says how to write it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
