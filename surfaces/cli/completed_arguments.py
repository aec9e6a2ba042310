"""Declares arguments that several commands have, and those that a shell can complete."""

from __future__ import annotations

import argparse
import os
from typing import Any

from albert_tools.engine.model.failure import Failure


def completed(parser: argparse.ArgumentParser, kind: str, name: str, **settings: Any) -> None:
    """Add an argument or an option that the function `kind` of `completion` completes. It loads when a shell asks for it.

    In a session, only the topics of the help are offered: the home has names and ids that the session may not see.
    """

    def complete(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        from albert_tools.surfaces.cli import completion

        if kind != "topics" and os.environ.get("ALBERT_SESSION"):
            return []
        try:
            found: list[str] = getattr(completion, kind)(prefix, parsed_args)
        except Failure:
            # An error message would spoil the command line.
            return []
        return found

    action: Any = parser.add_argument(name, **settings)
    action.completer = complete


def tool_arguments(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the arguments of a tool."""
    # Without a default, argparse would require at least one argument.
    completed(parser, "arguments", "arguments", nargs="*", default=[], metavar="KEY=VALUE", help=text)
    parser.add_argument("--args", metavar="JSON", help="all arguments as a JSON object; @FILE, or - for stdin")


def strict_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--strict``, which implies ``--json``."""
    parser.add_argument(
        "--strict", action="store_true", help="print the result as one JSON document that always has the same keys"
    )
