"""Arguments as records may keep them: what looks like a secret is taken out, and what is long is named by its hash.

A record is read by more people than a call is made for, and it is never deleted. So a value under a telling name, or of a telling
form, doesn't go in; of a long text its size and hash do, which is enough to say later whether it was this one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

#: Characters of one string that are kept whole, values of one container, levels of nesting.
MAX_TEXT, MAX_VALUES, MAX_LEVELS = 200, 50, 6

REDACTED = "[redacted]"

_NAMES = re.compile(
    r"(?i)(pass(word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization|cookie|session[_-]?id)"
)
_FORMS = re.compile(
    r"(?i)-----BEGIN [A-Z ]*PRIVATE KEY|\b(sk|pk|rk)[-_](live|test|proj)?[-_]?[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bey[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\."
    r"|://[^/\s:@]+:[^/\s:@]+@|\bbearer\s+[A-Za-z0-9._~+/-]{8,}"
)


def redacted(value: Any, name: str = "", level: int = 0) -> Any:
    """A copy of a JSON value for the record; `name` is what it is called where it stands."""
    if name and value not in (None, "", True, False) and _NAMES.search(name):
        return REDACTED
    if isinstance(value, str):
        if _FORMS.search(value[:10_000]):
            return REDACTED
        if len(value) <= MAX_TEXT:
            return value
        data = value.encode("utf-8", "surrogatepass")
        return {"$text": value[:60] + "…", "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if isinstance(value, Mapping):
        if level >= MAX_LEVELS:
            return {"$object": len(value)}
        kept = {str(k): redacted(v, str(k), level + 1) for k, v in list(value.items())[:MAX_VALUES]}
        return kept if len(value) <= MAX_VALUES else {**kept, "$more": len(value) - MAX_VALUES}
    if isinstance(value, list | tuple):
        if level >= MAX_LEVELS:
            return [f"… {len(value)} values"]
        items = [redacted(v, name, level + 1) for v in value[:MAX_VALUES]]
        return items if len(value) <= MAX_VALUES else [*items, f"… {len(value) - MAX_VALUES} more"]
    return value
