"""Asks the person at the terminal, during a run, whether a call may be made.

The question shows the exact action. If an argument is shortened, the question says so and offers the complete argument. While the
question is open, nothing else is printed, so no program can print a false question below it. Keys that were typed before the
question are ignored. A lasting answer must be typed in full.
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

from albert_tools.engine.model.recorded_call import without_hashes
from albert_tools.engine.model.reserved_names import SOURCE_TOOLS
from albert_tools.engine.model.visible_text import escape_invisible, look_alikes
from albert_tools.grammar.wrap import folded
from albert_tools.surfaces.text.console import Console, one_line, safe

if TYPE_CHECKING:
    from albert_tools.engine.authority.authorization import Answer, Asker, Choice, Question
    from albert_tools.engine.policy.decision import Decision

#: Characters of an argument that are shown at first.
_SHOWN = 2000
#: Seconds between checks whether the question was withdrawn.
_PAUSE = 0.1
#: Number of invalid answers after which the answer is no.
_TRIES = 3
#: Bytes that are read of an answer.
_MAX_TYPED = 4096


def asker(console: Console, session: bool = False) -> Asker:
    """Returns a function that shows a call and reads the answer from the terminal.

    `session` says whether the call is made in a session. Without a session, the answer "session" applies to the rest of the run.
    """

    from albert_tools.engine.authority.authorization import Answer
    from albert_tools.surfaces.text.person import person

    async def ask(question: Question) -> Answer:
        with console.alone():
            withdrawn = threading.Event()
            asked = asyncio.ensure_future(asyncio.to_thread(_ask, question, console, session, withdrawn))
            try:
                return Answer(await asyncio.shield(asked), f"{person()}, at the terminal")
            except asyncio.CancelledError as cancelled:
                withdrawn.set()
                # Until it has ended, it could read what is typed next.
                await asyncio.wait([asked])
                why = str(cancelled.args[0]) if cancelled.args else ""
                _line(f"\n{console.paint(f'  {one_line(why)}', 'dim', err=True)}" if why else "")
                raise

    return ask


def _line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _ask(question: Question, console: Console, session: bool, withdrawn: threading.Event) -> Choice:
    tool = question.tool.name
    by = f", called by {one_line(' in '.join(reversed(question.callers)))}" if question.callers else ""
    _line("")
    _line(console.paint(f"May {one_line(tool)} be called{by}?", "bold", err=True))
    cut = False
    for text in shown_arguments(tool, question.arguments):
        if text is None:
            cut = True
        else:
            _line(console.paint(text, "red", "bold", err=True) if text.startswith(("  …", "  !")) else text)
    if question.reason:
        _line(f"  {claim(question.reason)}")
    # The reason decides the answer, so nothing is brighter.
    why = console.paint(f"  {one_line(question.decision.message)}", "yellow", "bold", err=True)
    rule = console.paint(f"({one_line(question.decision.rule)})", "dim", err=True)
    _line(folded(f"{why} {rule}", console.err_width, 4))
    for text in lasting_rule(question.decision):
        _line(console.paint(text, "dim", err=True))
    choices = offered(question.choices, bool(question.callers), session)
    if len(choices) > 2:
        for choice in choices:
            text = f"    {choice.ljust(8)} {meaning(choice, tool, question.callers, session)}"
            _line(folded(text, console.err_width, 13))
    words = _listed(choices)
    tries = 0
    while True:
        _forget_typed()
        sys.stderr.write(f"  {words}{', or all to see all of it' if cut else ''}? [no] ")
        sys.stderr.flush()
        answer = _typed(withdrawn).strip().casefold()
        if cut and answer == "all":
            cut = False
            for text in shown_arguments(tool, question.arguments, whole=True):
                _line(text or "")
            continue
        choice_typed, tries = chosen(answer, choices), tries + 1
        if choice_typed is not None or not answer or tries == _TRIES:
            return choice_typed or "no"


def shown_arguments(tool: str, arguments: Mapping[str, Any], whole: bool = False) -> list[str | None]:
    """Lines that show the arguments of a tool. A long argument shows both ends. A None precedes the line that says how much is
    left out."""
    lines: list[str | None] = []
    for name, value in without_hashes(tool, arguments).items():
        is_source = tool in SOURCE_TOOLS and name == "source" and isinstance(value, str)
        text = value if is_source else _spelled(value)
        left_out = len(text) - _SHOWN
        if alike := look_alikes(text):
            lines.append(f"  ! {one_line(name)} has letters that look like others: {alike}")
        # The dangerous part may be at either end.
        first, *last = [text] if left_out <= 0 or whole else [text[: _SHOWN // 2], text[-_SHOWN // 2 :]]
        lines += [f"  {one_line(name)} =", *_source_lines(first)] if is_source else [f"  {one_line(name)} = {first}"]
        for end in last:
            lines += [None, f"  … {left_out:,} characters of {one_line(name)} are not shown …"]
            lines += _source_lines(end) if is_source else [f"  {end}"]
    return lines


def _source_lines(text: str) -> list[str]:
    """The lines of a source. Each begins with a bar, so a source can't imitate a line of the question."""
    return [f"    │ {one_line(escape_invisible(line))}" for line in text.removesuffix("\n").split("\n")]


def _spelled(value: Any) -> str:
    """A value as JSON, with escapes for every invisible character."""
    return safe(escape_invisible(json.dumps(value, ensure_ascii=False)))


def claim(reason: str) -> str:
    """The reason that the caller gave, marked as the caller's words."""
    return f"the caller's words: {_spelled(reason)}"


def lasting_rule(decision: Decision) -> list[str]:
    """Lines that say how the owner allows a command in every call. Empty if the rules can't list it.

    Print them unwrapped: the last one is to be copied.
    """
    sentence, key, line = (decision.hint or "").partition("ordinary_commands: ")
    if decision.rationale != "unknown_command" or not key:
        return []
    return [f"  {one_line(sentence.strip())}", f"    {key}{one_line(line)}"]


def offered(choices: Sequence[Choice], called: bool, session: bool) -> list[Choice]:
    """The choices that apply. "session" needs a run of a saved tool (`called`) or a session."""
    return [choice for choice in choices if choice != "session" or called or session]


def meaning(choice: Choice, tool: str, callers: Sequence[str], session: bool) -> str:
    """The meaning of a choice, as a phrase."""
    name = one_line(tool)
    who = (
        f"{one_line(' in '.join(reversed(callers)))} may call {name}"
        if callers
        else f"{name} may be called with these arguments"
    )
    match choice:
        case "once":
            return "this call, once"
        case "session":
            return f"{who} for the rest of {'the session' if session else 'this run'}"
        case "always":
            return f"{who} in every run of this version, until it is revoked"
    return "the call is denied"


def chosen(answer: str, choices: Sequence[Choice]) -> Choice | None:
    """The choice that was typed, or None. Only "once" and "no" can be abbreviated."""
    short: dict[str, Choice] = {"y": "once", "yes": "once", "n": "no"}
    name = short.get(answer, answer)
    return next((choice for choice in choices if choice == name), None)


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _typed(withdrawn: threading.Event) -> str:
    """Reads a line from the terminal. Returns an empty text at the end of the input, or when the question is withdrawn."""
    handle = sys.stdin.fileno()
    while not withdrawn.is_set():
        if select.select([handle], [], [], _PAUSE)[0]:
            return os.read(handle, _MAX_TYPED).decode(errors="replace")
    return ""


def confirmed(words: str) -> bool:
    """Ask the person at the terminal to confirm, and return whether they did."""
    return answered(f"{words} yes or no?").casefold() in ("y", "yes")


def answered(words: str) -> str:
    """Ask the person at the terminal, and return the line that they type, without spaces around it."""
    _forget_typed()
    sys.stderr.write(f"{words} ")
    sys.stderr.flush()
    return os.read(sys.stdin.fileno(), _MAX_TYPED).decode(errors="replace").strip()


def _forget_typed() -> None:
    """Discard keys that were typed before the question."""
    with suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
