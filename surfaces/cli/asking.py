"""Asking the person at the terminal, in the middle of a run, whether a call may be made."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

from albert_tools.surfaces.cli.console import Console, safe

if TYPE_CHECKING:
    from albert_tools.engine.govern.authority import Asker, Question

#: Characters of one argument that are shown; its size says what is left out.
_SHOWN = 300


def asker(console: Console) -> Asker:
    """Shows a call and reads yes or no from the terminal; whatever isn't a yes is a no."""

    async def ask(question: Question) -> bool:
        return await asyncio.to_thread(_ask, question, console)

    return ask


def _ask(question: Question, console: Console) -> bool:
    def line(text: str) -> None:
        print(text, file=sys.stderr)

    by = f", called by {safe(' in '.join(reversed(question.callers)))}" if question.callers else ""
    line("")
    line(console.paint(f"May {safe(question.tool.name)} be called{by}?", "yellow", "bold", err=True))
    for name, value in question.arguments.items():
        text = json.dumps(value, ensure_ascii=False)
        more = f"… ({len(text):,} characters)" if len(text) > _SHOWN else ""
        line(f"  {safe(name)} = {safe(text[:_SHOWN])}{more}")
    line(console.paint(f"  {safe(question.decision.message)} ({safe(question.decision.rule)})", "dim", err=True))
    sys.stderr.write("  yes or no? ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip().casefold()
    return answer in ("y", "yes")
