"""Sanitizes texts for logs and traces: no secrets, limited length, one line, no control characters.

Names and messages can come from an agent or from an attacker. In a log, they must not start a new line or send escape sequences
to a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.redaction import recorded, redacted, redacted_text
from albert_tools.engine.model.telemetry import Started

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

#: The most characters of a name or an id.
MAX_NAME = 200
#: The most frames and characters of a traceback.
MAX_FRAMES, MAX_TRACEBACK = 20, 10_000


def printable(text: str) -> str:
    """A trusted text, with non-printable characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def line(text: object, most: int = 500) -> str:
    """An untrusted text: redacted, shortened to about `most` characters, with non-printable characters escaped."""
    return printable(redacted_text(str(text), most))


def trace(fault: BaseException) -> list[str]:
    """The lines of a traceback, sanitized. Of a long traceback only the innermost frames."""
    import traceback

    text = "".join(traceback.format_exception(fault, limit=-MAX_FRAMES))
    return [printable(part) for part in redacted_text(text, MAX_TRACEBACK).splitlines()]


def name(text: object) -> str:
    """As `line`, with the maximum length of a name."""
    return line(text, MAX_NAME)


def tool(call: Started) -> str:
    """The name of the tool. If the tool is unknown, the requested name is sanitized."""
    # The name of an existing tool was checked when the tool was defined.
    return printable(call.tool) if call.kind is not None else name(call.tool)


def arguments(call: Started) -> Any:
    """The arguments as JSON, redacted; None if they are not a mapping."""
    return recorded(call.arguments, call.by_hash) if isinstance(call.arguments, Mapping) else None


def value(output: Any) -> Any:
    """A result as JSON, redacted."""
    return redacted(output)


def compact(content: Any) -> str:
    """JSON on one line of ASCII. NaN and the infinities become strings."""
    try:
        return _ENCODER.encode(content)
    except ValueError:
        return _ENCODER.encode(json.loads(json.dumps(content), parse_constant=str))
