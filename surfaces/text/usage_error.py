"""A mistake on the command line. This class has its own module because `run` imports it and must load little."""

from __future__ import annotations


class Usage(Exception):
    """The command line is wrong; `hint` says how to write it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
