"""The parsers of commands that have subcommands: ``policy``, ``session``, ``approvals``, ``runs``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from albert_tools.engine.policy.presets import PRESETS
from albert_tools.surfaces.cli.completed_arguments import completed, strict_option, tool_arguments
from albert_tools.surfaces.text.times import seconds

Make = Callable[[str, str], argparse.ArgumentParser]

_ANSWERS = ("once", "session", "always", "no")


def policy(make: Make) -> None:
    """``albert policy``."""
    init = make("init", "write commented rules to begin with; existing rules are never replaced")
    init.add_argument("--preset", choices=tuple(PRESETS), default="standard", help="default: standard")
    make("check", "find mistakes in the rules, and rules without effect")
    explain = make("explain", "show what each rule says about one call, and the decision")
    completed(explain, "names", "name", metavar="TOOL", help="a tool")
    tool_arguments(explain, "an argument")
    explain.add_argument(
        "--mode", type=str.upper, metavar="MODE", help="judge it in this mode; default: the present one"
    )
    test = make("test", "check that the rules decide as files expect")
    test.add_argument("files", nargs="+", metavar="FILE", help="expected decisions, in YAML")
    test.add_argument("--rules", metavar="FILE", help="the owner's rules to test; default: those in force")
    other = make("try", "judge the calls in the ledger by other rules, and list what would be decided differently")
    other.add_argument("file", metavar="FILE", help="a file of rules")


def session(make: Make) -> None:
    """``albert session``."""
    new = make("new", "open a session; stdout gets its token, which is never shown again")
    session_options(new)
    new.add_argument(
        "--within",
        nargs="?",
        const="",
        metavar="TOKEN",
        help="open it within another session, whose limits apply too; default of TOKEN: ALBERT_SESSION",
    )
    make("list", "list the sessions").add_argument(
        "--all", action="store_true", default=argparse.SUPPRESS, help="also list sessions that have ended"
    )
    _id(make("revoke", "end a session, and all sessions within it"), "sessions", "session")


def session_options(new: argparse.ArgumentParser, client: str = "you", lifetime: str = "24h") -> None:
    """The options that describe a new session, see `sessions.open_session`."""
    new.add_argument("--client", metavar="NAME", help=f"who uses it; default: {client}")
    new.add_argument("--tools", metavar="A,B", help="the tools it may call; default: all that the rules allow")
    new.add_argument(
        "--preset", choices=tuple(PRESETS), help="the tools it may call: those that this preset allows without approval"
    )
    new.add_argument(
        "--for",
        dest="seconds",
        type=_lifetime,
        metavar="TIME",
        help=f"its lifetime: 90s, 15m, 2h, 30d or ever; default: {lifetime}",
    )
    for unit, text in (
        ("calls", "tool calls"),
        ("wall-seconds", "seconds of run time"),
        ("bytes-written", "bytes written"),
        ("network-bytes", "bytes to and from the network"),
    ):
        new.add_argument(f"--{unit}", type=_amount, metavar="N", help=f"budget: {text}")
    new.add_argument(
        "--cwd", metavar="DIR", default="", help="the folder of the workspace that relative paths start from"
    )


def chat_options(chat: argparse.ArgumentParser) -> None:
    """The options of ``albert chat``."""
    for option, metavar, text in (
        ("--model", "NAME", "the model; default: the first one that the provider's configuration lists"),
        ("--provider", "NAME", "a provider of the rules (primitives.inference.providers); default: the only one"),
        ("--base-url", "URL", "the address of a provider that is not in the rules"),
        ("--secret", "NAME", "with --base-url: the secret that is the key"),
    ):
        chat.add_argument(option, metavar=metavar, help=text)
    chat.add_argument(
        "--api",
        choices=("openai", "anthropic"),
        help="the provider's interface; without --provider and --base-url, its own address and environment variables are used",
    )
    chat.add_argument(
        "--protocol",
        choices=("native", "text"),
        help="how the model calls tools: by function calling (the default), or as <tool_call> in its text",
    )
    chat.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="continue a saved conversation; default of ID: the newest one with an answer",
    )
    chat.add_argument(
        "--rounds", type=_number, default=50, metavar="N", help="the most answers with calls; default: 50"
    )
    chat.add_argument("--max-tokens", type=_amount, metavar="N", help="the most tokens of the conversation")
    chat.add_argument("--max-cost", type=_money, metavar="N", help="the most that the conversation may cost")
    session_options(chat, "the chat")


def approvals(make: Make) -> None:
    """``albert approvals``."""
    listing = make("list", "list open questions, and answers that still apply")
    listing.add_argument("--all", action="store_true", default=argparse.SUPPRESS, help="also list closed questions")
    listing.add_argument(
        "--page", type=_number, default=argparse.SUPPRESS, metavar="N", help="show page N, of 50 each; default: 1"
    )
    _id(make("show", "show a question in full"), "approvals", "question")
    answer = make("answer", "show a question in full, and answer it; the first answer counts")
    _id(answer, "open_approvals", "question")
    answer.add_argument("choice", choices=_ANSWERS, help="once, session, always or no")
    answer.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    answer.add_argument("--resume", action="store_true", help="then continue the run that waits for the answer")
    _id(make("revoke", "revoke an answer, or withdraw a question"), "approvals", "question")


def runs(make: Make) -> None:
    """``albert runs``."""
    make("list", "list the newest runs").add_argument(
        "--limit", type=_number, default=argparse.SUPPRESS, metavar="N", help="list at most N runs; default: 20"
    )
    _id(make("show", "draw a run as a timeline"), "runs", "run")
    resume = make("resume", "continue a run that waits or was interrupted")
    _id(resume, "unfinished_runs", "run")
    strict_option(resume)
    _id(make("cancel", "cancel a run"), "unfinished_runs", "run")
    replay = make("replay", "repeat a run without doing anything: each call gets its recorded result")
    _id(replay, "runs", "run")
    replay.add_argument("--version", metavar="HASH", help="use another version of its tool")
    sweep = make("sweep", "delete the journals of finished runs, and stored values that no record refers to")
    sweep.add_argument(
        "--older-than",
        type=seconds,
        default=30 * 86400.0,
        metavar="TIME",
        help="runs older than this, such as 90d; default: 30d",
    )


def _id(parser: argparse.ArgumentParser, kind: str, noun: str) -> None:
    completed(parser, kind, "id", metavar="ID", help=f"a {noun}'s id, or its first digits")


def _lifetime(text: str) -> float:
    return math.inf if text == "ever" else seconds(text)


def _amount(text: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise argparse.ArgumentTypeError(f"expected a whole number, 0 or more, got {text[:40]!r}")
    return int(text)


def _money(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found < 1e12:
        raise argparse.ArgumentTypeError(f"expected a number, 0 or more, got {text[:40]!r}")
    return found


def _number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text[:8]) <= 100_000:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 100,000, got {text[:40]!r}")
    return int(text[:8])
