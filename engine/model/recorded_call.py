"""A call as the record has it, on one line for its reader. Each text in it may be hostile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.visible_text import escape_invisible, one_line

#: Arguments of `define_tool` that are not shown. They are hashes of the source, which is shown.
_HASHES = frozenset({"stored_source", "version"})


def call_text(tool: str, arguments: Any, most: int = 60) -> str:
    """A call, its arguments shortened to `most` characters each."""
    return f"{one_line(tool)}({arguments_line(tool, arguments, most) if isinstance(arguments, Mapping) else '…'})"


def arguments_line(tool: str, arguments: Any, most: int = 60) -> str:
    """The arguments of a call, shortened to `most` characters each; empty if they are not known."""
    if not isinstance(arguments, Mapping):
        return ""
    shown = without_hashes(tool, arguments).items()
    return ", ".join(f"{one_line(str(k))}={one_line(escape_invisible(_value(v, most)))}" for k, v in shown)


def without_hashes(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that a person can't read."""
    return {name: value for name, value in arguments.items() if tool != "define_tool" or name not in _HASHES}


def _value(value: Any, most: int) -> str:
    """A value from the record, shortened. Of a long text the record has only the beginning and the size."""
    if isinstance(value, Mapping) and set(value) == {"$text", "size_bytes", "sha256"}:
        size = value["size_bytes"]
        return f"{brief(json.dumps(value['$text'], ensure_ascii=False), most)} ({size if type(size) is int else '?'} bytes)"
    return brief(json.dumps(value, ensure_ascii=False), most)
