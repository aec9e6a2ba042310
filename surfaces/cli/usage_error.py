"""A mistake on the command line; a module of its own, because the run path imports it."""

from __future__ import annotations


class Usage(Exception):
    """The command line is wrong; `hint` says how to write it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
