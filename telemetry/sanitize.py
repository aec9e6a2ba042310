"""What may leave the process: without what looks like a secret, short, and on one line whatever it is shown by.

Names and messages can be an agent's or a stranger's text. In a log they must not begin a line of their own, nor speak to the
terminal that shows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from albert_tools.engine.model.redaction import recorded, redacted, redacted_text
from albert_tools.engine.model.telemetry import Started

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

#: Characters of a name or an id.
MAX_NAME = 200


def printable(text: str) -> str:
    """A text of our own or the owner's: what doesn't print is spelled as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def line(text: object, most: int = 500) -> str:
    """A text of strangers, at most about `most` characters: secrets taken out, what doesn't print spelled as an escape."""
    return printable(redacted_text(str(text), most))


def name(text: object) -> str:
    """As `line`, at a name's length."""
    return line(text, MAX_NAME)


def tool(call: Started) -> str:
    """The name of the tool; what was asked for, when there is none."""
    # A tool that exists has a name that was checked when it was made.
    return printable(call.tool) if call.kind is not None else name(call.tool)


def arguments(call: Started) -> Any:
    """The arguments as JSON, secrets taken out; None when they are no mapping, which is no call of anything."""
    return recorded(call.arguments, call.by_hash) if isinstance(call.arguments, Mapping) else None


def value(output: Any) -> Any:
    """A result as JSON, secrets taken out."""
    return redacted(output)


def compact(content: Any) -> str:
    """JSON on one line of ASCII. What JSON has no word for (NaN) becomes a string."""
    try:
        return _ENCODER.encode(content)
    except ValueError:
        return _ENCODER.encode(json.loads(json.dumps(content), parse_constant=str))
