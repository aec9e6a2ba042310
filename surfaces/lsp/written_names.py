"""Finds what is written at a place: a tool, a part of the language, an unfinished call.

An unfinished program can't be parsed, so these functions look at the text. They also find names in strings and comments, and an
unfinished string can hide a call.
"""

from __future__ import annotations

import re

from albert_tools.engine.model.vocabulary import facades

_TOOL = re.compile(r"\btools\.(\w+(?:\.\w+)*)")
_NAME = re.compile(r"@?[A-Za-z_][\w.]*")
_BEGUN = re.compile(r"\btools\.([\w.]*)$")
_ARGUMENT = re.compile(r"(\w+)\s*=(?!=)")
_NEW_ARGUMENT = re.compile(r"(?:^|,)\s*\w*$")

#: The sections of the language about its own names.
_SECTIONS = {
    "@tool": "one whole tool",
    "@example": "examples",
    "parallel": "calls side by side",
    "ToolError": "calling tools",
}
#: Characters before a place in which the beginning of a tool's name, and that of a call, is searched.
MAX_NAME, MAX_CALL = 300, 4000


def tool_at(line: str, column: int) -> tuple[str, int, int] | None:
    """The tool that is named at a column of a line, and the columns where ``tools.NAME`` begins and ends."""
    for match in _TOOL.finditer(line):
        if match.start() <= column <= match.end():
            return match[1], match.start(), match.end()
    return None


def topic_at(line: str, column: int) -> str | None:
    """The topic of the help about the name at a column of a line: a module, or a section about a name of the language."""
    written = next((match[0] for match in _NAME.finditer(line) if match.start() <= column <= match.end()), "")
    if written in _SECTIONS:
        return _SECTIONS[written]
    first, _, others = written.partition(".")
    module = f"{first}.{others.partition('.')[0]}"
    module = module if module in facades() else first
    # A variable can have the name of a module.
    is_module = module != written or line.lstrip().startswith(("import ", "from "))
    return module if is_module and module in facades() else None


def begun_tool(before: str) -> str | None:
    """What is written of a tool's name at the end of a text; None if there is no tool's name."""
    match = _BEGUN.search(before[-MAX_NAME:])
    return None if match is None else match[1]


def open_call(before: str) -> tuple[str, set[str]] | None:
    """The tool of the call in which a new argument begins at the end of a text, and the names of the arguments before it."""
    before = before[-MAX_CALL:]
    depth, arguments = 0, ""
    for i in range(len(before) - 1, -1, -1):
        c = before[i]
        if c in "([{" and not depth:
            name = begun_tool(before[:i].rstrip()) if c == "(" and _NEW_ARGUMENT.search(arguments) else None
            return (name, set(_ARGUMENT.findall(arguments))) if name else None
        depth += (c in ")]}") - (c in "([{")
        arguments = c + arguments if not depth else arguments
    return None
