"""Asking the person at the terminal, in the middle of a run, whether a call may be made.

What is shown must be what is done: nothing of an argument is left out unless that is said, and then all of it can be seen before
the answer. While the question stands nothing else is printed, so that no program can put another question under it; and only what
is typed after the question is an answer to it. The graver an answer, the more of it has to be typed.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from albert_tools.surfaces.cli.console import Console, one_line, safe
from albert_tools.surfaces.cli.deceptive_text import look_alikes, seen
from albert_tools.surfaces.cli.wrap import folded

if TYPE_CHECKING:
    from albert_tools.engine.authority.authorization import Answer, Asker, Choice, Question

#: Characters of one argument that are shown at first.
_SHOWN = 2000
#: Seconds between two looks whether the question is still wanted.
_PAUSE = 0.1
#: Answers that are none, before they count as a no.
_TRIES = 3
#: Bytes of an answer that are read.
_TYPED = 4096


def asker(console: Console, session: bool = False) -> Asker:
    """Shows a call and reads the choice from the terminal; whatever isn't a choice, several times, is a no.

    `session` says whether it is made in one, or "for the session" would mean this run.
    """

    from albert_tools.engine.authority.authorization import Answer
    from albert_tools.surfaces.cli.person import person

    async def ask(question: Question) -> Answer:
        with console.alone():
            gone = threading.Event()
            try:
                choice = await asyncio.to_thread(_ask, question, console, session, gone)
                return Answer(choice, f"{person()}, at the terminal")
            except asyncio.CancelledError as called_off:
                gone.set()
                why = str(called_off.args[0]) if called_off.args else ""
                _line(f"\n{console.paint(f'  {one_line(why)}', 'dim', err=True)}" if why else "")
                raise

    return ask


def _line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _ask(question: Question, console: Console, session: bool, gone: threading.Event) -> Choice:
    tool = question.tool.name
    by = f", called by {one_line(' in '.join(reversed(question.callers)))}" if question.callers else ""
    _line("")
    _line(console.paint(f"May {one_line(tool)} be called{by}?", "yellow", "bold", err=True))
    cut = False
    for text in shown_arguments(question.arguments):
        if text is None:
            cut = True
        else:
            _line(console.paint(text, "red", "bold", err=True) if text.startswith(("  …", "  !")) else text)
    if question.reason:
        _line(f"  {claim(question.reason)}")
    why = f"  {one_line(question.decision.message)} ({one_line(question.decision.rule)})"
    _line(console.paint(folded(why, console.err_width, 4), "dim", err=True))
    choices = offered(question.choices, bool(question.callers), session)
    if len(choices) > 2:
        for choice in choices:
            text = f"    {choice.ljust(8)} {meaning(choice, tool, question.callers, session)}"
            _line(folded(text, console.err_width, 13))
    words = _listed(["yes" if choice == "once" else choice for choice in choices])
    tries = 0
    while True:
        _forget_typed()
        sys.stderr.write(f"  {words}, or all to see all of it? " if cut else f"  {words}? ")
        sys.stderr.flush()
        answer = _typed(gone).strip().casefold()
        if cut and answer == "all":
            cut = False
            for name, value in question.arguments.items():
                _line(f"  {one_line(name)} = {_spelled(value)}")
            continue
        meant, tries = chosen(answer, choices), tries + 1
        if meant is not None or not answer or tries == _TRIES:
            return meant or "no"


def shown_arguments(arguments: Mapping[str, Any], whole: bool = False) -> list[str | None]:
    """Lines that show arguments, long ones by both their ends; a None stands before what says that something is left out."""
    lines: list[str | None] = []
    for name, value in arguments.items():
        text = _spelled(value)
        left_out = len(text) - _SHOWN
        if alike := look_alikes(text):
            lines.append(f"  ! {one_line(name)} has letters that look like others: {alike}")
        if left_out <= 0 or whole:
            lines.append(f"  {one_line(name)} = {text}")
            continue
        # The end as well as the beginning: what matters is as likely to be there.
        lines.append(f"  {one_line(name)} = {text[: _SHOWN // 2]}")
        lines += [None, f"  … {left_out:,} characters of {one_line(name)} are not shown …"]
        lines.append(f"  {text[-_SHOWN // 2 :]}")
    return lines


def _spelled(value: Any) -> str:
    """A value as JSON, in which everything is seen that is there."""
    return safe(seen(json.dumps(value, ensure_ascii=False)))


def claim(reason: str) -> str:
    """What the agent says that the call is for, so that nobody takes it for ours."""
    return f"the caller's words: {_spelled(reason)}"


def offered(choices: Sequence[Choice], called: bool, session: bool) -> list[Choice]:
    """The choices that mean anything here: by hand and without a session, each call is one of its own."""
    return [choice for choice in choices if choice != "session" or called or session]


def meaning(choice: Choice, tool: str, callers: Sequence[str], session: bool) -> str:
    """What a choice comes to."""
    name = one_line(tool)
    who = f"{one_line(' in '.join(reversed(callers)))} may call {name}" if callers else f"{name} may be called just so"
    match choice:
        case "once":
            return "this call, once"
        case "session":
            return f"{who} for the rest of {'the session' if session else 'this run'}"
        case "always":
            return f"{who} in every run of this version, until it is revoked"
    return "the call is denied"


def chosen(answer: str, choices: Sequence[Choice]) -> Choice | None:
    """What somebody meant, or None; a lasting yes has to be spelled out."""
    short: dict[str, Choice] = {"y": "once", "yes": "once", "n": "no"}
    meant = short.get(answer, answer)
    return next((choice for choice in choices if choice == meant), None)


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _typed(gone: threading.Event) -> str:
    """A line from the terminal; nothing at its end, or once nobody wants to know any more."""
    handle = sys.stdin.fileno()
    while not gone.is_set():
        if select.select([handle], [], [], _PAUSE)[0]:
            return os.read(handle, _TYPED).decode(errors="replace")
    return ""


def confirmed(words: str) -> bool:
    """Whether the person at the terminal says yes to a sentence of ours."""
    _forget_typed()
    sys.stderr.write(f"{words} yes or no? ")
    sys.stderr.flush()
    return os.read(sys.stdin.fileno(), _TYPED).decode(errors="replace").strip().casefold() in ("y", "yes")


def _forget_typed() -> None:
    """What was typed before the question was there is no answer to it."""
    with suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
