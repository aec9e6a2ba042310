"""Describes a call and its result in one line: ``read_file path="notes.md" · 12 ms · allowed``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.messages import counted
from albert_tools.engine.model.result import ToolResult
from albert_tools.surfaces.chat.shown_lines import source_of
from albert_tools.surfaces.text.console import one_line

#: Characters of an argument, and number of arguments, that are shown.
_MAX_ARGUMENT, _MAX_ARGUMENTS = 60, 8


def call_line(name: str, arguments: Mapping[str, Any]) -> str:
    """A call in one line: ``read_file path="notes.md"``."""
    source = source_of(name, arguments)
    shown = [
        f"{one_line(key)}={_lines(value) if source and key == 'source' else _argument(value)}"
        for key, value in [*arguments.items()][:_MAX_ARGUMENTS]
    ]
    return " ".join([one_line(name[:100]), *shown])


def _lines(source: str) -> str:
    """A source, which is shown elsewhere."""
    count = source.strip("\n").count("\n") + 1
    return f"({counted(count, 'line')})"


def _argument(value: Any) -> str:
    text = one_line(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _MAX_ARGUMENT else text[:_MAX_ARGUMENT] + "…"


def duration(seconds: float) -> str:
    """``12 ms`` or ``3.4 s``."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def verdict_of(result: ToolResult) -> tuple[str, str]:
    """What the rules decided or what went wrong, in a few words, and its style."""
    error = result.error
    if error is None:
        return ("approved", "green") if result.policy.get("verdict") == "ask" else ("allowed", "dim")
    what = one_line(error.message.partition("\n")[0])
    if error.rationale == "refused":
        return "you said no", "red"
    if error.denied:
        return f"denied by {one_line(error.rule or '')}: {what}", "red"
    return f"{error.code}: {what}", "yellow"
