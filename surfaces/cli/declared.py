"""Declares commands and their arguments as data."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from albert_tools.engine.model.failure import Failure


class Argument(NamedTuple):
    """An argument: its names, separated by spaces, and what `add_argument` gets besides.

    `completer` is a function of `completion` that says what a shell offers. In a session, only the topics of the help are offered:
    the home has names and ids that the session may not see.
    """

    names: str
    settings: dict[str, Any]
    completer: str = ""

    def add_to(self, parser: argparse.ArgumentParser, **changed: Any) -> None:
        """Add the argument to a parser, with other settings where `changed` has them."""
        action: Any = parser.add_argument(*self.names.split(), **(self.settings | changed))
        if self.completer:
            action.completer = self._complete

    def _complete(self, prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        from albert_tools.surfaces.cli import completion

        if self.completer != "topics" and "ALBERT_SESSION" in os.environ:
            return []
        try:
            proposals: list[str] = getattr(completion, self.completer)(prefix, parsed_args)
        except Failure:
            # An error message would spoil the command line.
            return []
        return proposals


class Command:
    """A command, or an action of one (``albert runs show``).

    Args:
        text: What it is for.
        arguments: Its arguments.
        at: The module and the function that do it, if not both have its name.
        actions: The actions of a command that has some.
        bare: The action that it does if none is named. It has the command's arguments too.
    """

    def __init__(
        self, text: str, *arguments: Argument, at: str = "", actions: Mapping[str, Command] = {}, bare: str = ""
    ) -> None:
        self.text, self.arguments, self.at, self.actions, self.bare = text, arguments, at, actions, bare


def flag(names: str, text: str, **settings: Any) -> Argument:
    """An option without a value. `names` are separated by spaces; `text` is the help."""
    return Argument(names, {"action": "store_true", "help": text, **settings})


def value(names: str, metavar: str | None, text: str | None, completer: str = "", **settings: Any) -> Argument:
    """An argument, or an option with a value. `metavar` names the value in the help."""
    return Argument(names, {"metavar": metavar, "help": text, **settings}, completer)


def whole_number(least: int, most: int, expected: str) -> Callable[[str], int]:
    """A type for argparse: a whole number within bounds. `expected` says so in messages."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > 15 or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text[:40]!r}")
        return int(text)

    return read


def number(most: float, expected: str) -> Callable[[str], float]:
    """As `whole_number`, for a number from 0 that may have a fraction."""

    def read(text: str) -> float:
        try:
            parsed = float(text)
        except ValueError:
            parsed = -1
        if not 0 <= parsed <= most:
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text[:40]!r}")
        return parsed

    return read


COUNT = whole_number(1, 1_000_000, "a number from 1 to 1,000,000")
AMOUNT = whole_number(0, 10**15, "a whole number, 0 or more")
PORT = whole_number(0, 65535, "a port, 0 to 65535")
