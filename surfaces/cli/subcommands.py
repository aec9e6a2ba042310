"""The commands that have commands of their own: ``session``, ``approvals``, ``runs``. Loaded when one of them is meant."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from albert_tools.surfaces.cli.times import seconds

Make = Callable[[str, str], argparse.ArgumentParser]
Completer = Callable[[str], Callable[..., list[str]]]

_ANSWERS = ("once", "session", "always", "no")


def session(make: Make, completer: Completer) -> None:
    """``albert session``."""
    new = make("new", "open a session; its token is printed once, alone on stdout")
    new.add_argument("--client", metavar="NAME", help="whom it is for; else you")
    new.add_argument("--tools", metavar="A,B", help="the tools it may call; else all that the rules allow")
    new.add_argument(
        "--for", dest="seconds", type=_lifetime, metavar="TIME", help="90s, 15m, 2h, 30d or ever; else 24h"
    )
    for unit, text in (
        ("calls", "calls of tools"),
        ("wall-seconds", "seconds of running"),
        ("bytes-written", "bytes written"),
        ("network-bytes", "bytes to and from the network"),
    ):
        new.add_argument(f"--{unit}", type=_amount, metavar="N", help=f"its budget of {text}")
    new.add_argument("--cwd", metavar="DIR", default="", help="where relative paths begin, in the workspace")
    new.add_argument(
        "--within",
        nargs="?",
        const="",
        metavar="TOKEN",
        help="take it from another session, with no more than that has; without TOKEN, from ALBERT_SESSION's",
    )
    make("list", "list the sessions").add_argument(
        "--all", action="store_true", default=argparse.SUPPRESS, help="also those that are over"
    )
    _id(make("revoke", "end a session, and those within it"), "a session's id, or its beginning", completer("sessions"))


def approvals(make: Make, completer: Completer) -> None:
    """``albert approvals``."""
    make("list", "list what waits for an answer, and what was allowed").add_argument(
        "--all", action="store_true", default=argparse.SUPPRESS, help="also what is over"
    )
    _id(make("show", "show one question in full"), "its id, or the beginning", completer("approvals"))
    answer = make("answer", "show a question in full, and answer it; the first answer holds")
    _id(answer, "its id, or the beginning", completer("open_approvals"))
    answer.add_argument("choice", choices=_ANSWERS, help="once, session, always or no")
    answer.add_argument("--yes", action="store_true", help="on a terminal: don't ask whether you mean it")
    _id(make("revoke", "take a lasting answer, an unused one or a question back"), "its id", completer("approvals"))


def runs(make: Make, completer: Completer) -> None:
    """``albert runs``."""
    make("list", "list the newest runs").add_argument(
        "--limit", type=_number, default=argparse.SUPPRESS, metavar="N", help="at most so many; 20"
    )
    _id(make("show", "draw a run as a timeline"), _RUN, completer("runs"))
    _id(make("resume", "go on with a run that waits or was cut short"), _RUN, completer("unfinished_runs"))
    _id(make("cancel", "call a run off"), _RUN, completer("unfinished_runs"))
    replay = make("replay", "go through a run again, and do nothing: each step answers as it did")
    _id(replay, _RUN, completer("runs"))
    replay.add_argument("--version", metavar="HASH", help="with another version of its tool")
    sweep = make("sweep", "delete the records of old runs that are over, and kept values that no record names")
    sweep.add_argument(
        "--older-than", type=seconds, default=30 * 86400.0, metavar="TIME", help="such as 12h or 90d; 30d"
    )


_RUN = "a run's id, or its beginning"


def _id(parser: argparse.ArgumentParser, text: str, completer: Any) -> None:
    action: Any = parser.add_argument("id", metavar="ID", help=text)
    action.completer = completer


def _lifetime(text: str) -> float:
    return math.inf if text == "ever" else seconds(text)


def _amount(text: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, got {text[:40]!r}")
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text[:8]) <= 100_000:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 100,000, got {text[:40]!r}")
    return int(text[:8])
