"""The values that can leave a program: None, booleans, 64-bit integers, finite floats, valid Unicode, lists, dicts with text keys.

A definition and a manifest consist of such values only, because they are stored and sent as JSON.
"""

from __future__ import annotations

import math
from typing import Any

MIN_INT, MAX_INT = -(2**63), 2**63 - 1

#: For the class of a value that can't leave a program, what to write.
REMEDIES = {
    "set": "sorted(…) makes a list of it",
    "frozenset": "sorted(…) makes a list of it",
    "bytes": "decode it: value.decode(), or base64.b64encode(value).decode()",
    "datetime": "value.isoformat()",
    "date": "value.isoformat()",
    "deque": "list(…) makes a list of it",
    "dict_keys": "list(…) makes a list of it",
    "dict_values": "list(…) makes a list of it",
    "dict_items": "list(…) makes a list of it",
    "range": "list(…) makes a list of it",
}


def problem_in(value: Any) -> str | None:
    """A part of a value that can't leave a program, in words; None if there is none."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if not all(isinstance(key, str) for key in part):
                return "a key that is not text"
            pending += [*part, *part.values()]
        elif isinstance(part, list | tuple):
            pending += part
        elif isinstance(part, str):
            if not part.isascii() and any("\ud800" <= c <= "\udfff" for c in part):
                return "half of a surrogate pair"
        elif isinstance(part, float):
            if not math.isfinite(part):
                return f"the float {part}"
        elif isinstance(part, int):
            if not MIN_INT <= part <= MAX_INT:
                return "an int beyond 64 bits"
        elif part is not None:
            return type(part).__name__
    return None
