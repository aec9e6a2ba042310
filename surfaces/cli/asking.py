"""Asking the person at the terminal, in the middle of a run, whether a call may be made.

What is shown must be what is done: nothing of an argument is left out unless that is said, and then all of it can be seen before
the answer. While the question stands nothing else is printed, so that no program can put another question under it; and only what
is typed after the question is an answer to it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from albert_tools.surfaces.cli.console import Console, safe

if TYPE_CHECKING:
    from albert_tools.engine.govern.authority import Asker, Question

#: Characters of one argument that are shown at first.
_SHOWN = 2000


def asker(console: Console) -> Asker:
    """Shows a call and reads yes or no from the terminal; whatever isn't a yes is a no."""

    async def ask(question: Question) -> bool:
        with console.alone():
            return await asyncio.to_thread(_ask, question, console)

    return ask


def _line(text: str) -> None:
    print(text, file=sys.stderr)


def _ask(question: Question, console: Console) -> bool:
    by = f", called by {safe(' in '.join(reversed(question.callers)))}" if question.callers else ""
    _line("")
    _line(console.paint(f"May {safe(question.tool.name)} be called{by}?", "yellow", "bold", err=True))
    cut = False
    for name, value in question.arguments.items():
        text = json.dumps(value, ensure_ascii=False)
        left_out = len(text) - _SHOWN
        if left_out <= 0:
            _line(f"  {safe(name)} = {safe(text)}")
            continue
        cut = True
        # The end as well as the beginning: what matters is as likely to be there.
        _line(f"  {safe(name)} = {safe(text[: _SHOWN // 2])}")
        _line(console.paint(f"  … {left_out:,} characters of {safe(name)} are not shown …", "red", "bold", err=True))
        _line(f"  {safe(text[-_SHOWN // 2 :])}")
    _line(console.paint(f"  {safe(question.decision.message)} ({safe(question.decision.rule)})", "dim", err=True))
    _forget_typed()
    while True:
        sys.stderr.write("  yes or no, or all to see all of it? " if cut else "  yes or no? ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip().casefold()
        if not cut or answer != "all":
            return answer in ("y", "yes")
        cut = False
        for name, value in question.arguments.items():
            _line(f"  {safe(name)} = {safe(json.dumps(value, ensure_ascii=False))}")
        _forget_typed()


def _forget_typed() -> None:
    """What was typed before the question was there is no answer to it."""
    with suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
