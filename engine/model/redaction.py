"""Redact values for the record: secrets are replaced, and long texts become their size and hash.

Many people read a record, and it is never deleted. So the record contains no value whose name or form looks like a secret. The size
and hash of a long text are sufficient to compare it with a given text later.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from albert_tools.engine.model.definition import canonical

#: The most characters of one string, values of one container and levels of nesting that are recorded in full.
MAX_TEXT, MAX_VALUES, MAX_LEVELS = 200, 50, 6

REDACTED = "[redacted]"

#: The most bytes of the arguments of a refused call that are recorded. A program can be refused often, and must not fill the disk.
MAX_REFUSED = 4 * 1024

# A hostile text must not make a search slow, so what a pattern repeats before something else is bounded, and is not tried again.
_NAMES = re.compile(
    r"(?i)(pass(word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization|cookie|session[_-]?id)"
)
_FORMS = re.compile(
    r"(?i)-----BEGIN [A-Z ]*PRIVATE KEY|\b(sk|pk|rk)[-_](live|test|proj)?[-_]?[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\balb_[0-9a-f]{64}|\bAKIA[0-9A-Z]{16}\b|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bey[A-Za-z0-9_-]{10,300}+\.[A-Za-z0-9_-]{10,}+\."
    r"|://[^/\s:@]*:[^/\s@]+@|\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"
)
#: A complete private key. Without an end marker, the key extends to the end of the text.
_KEYS = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL)
#: A secret after its name: in a command, in a URL's query, in a header, or in JSON.
_ASSIGNED = re.compile(
    r"(?i)((?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization|cookie"
    r"|session[_-]?id)[A-Za-z0-9_]{0,200}+(?:[\"']?\s*[=:]\s*|\s+(?=[\"'])|(?<=--password)\s+|(?<=--token)\s+)[\"']?)(?![\s\"'$])[^\s&\"']{4,}"
)


#: Names of counts that look like names of secrets, for example ``max_tokens``.
_COUNTS = re.compile(r"(?i)_tokens\Z")
#: The most characters of one value. After that, only the length of further containers is recorded.
MAX_ALL = 64 * 1024
#: The most characters of one text, and of the texts of one value, that are searched for secrets. Further texts count as secrets.
MAX_SEARCHED, MAX_SEARCHED_IN_ALL = 10_000, 256 * 1024


def redacted(value: Any) -> Any:
    """A copy of a value for the record: JSON of limited size."""
    try:
        return _Redaction().of(value, 0)
    except Exception as error:
        # A caller's object may raise when it is read. The entry must be written nevertheless.
        return {"$unreadable": type(error).__name__[:100]}


def redacted_text(text: str, most: int = 500) -> str:
    """A message for the record. Secrets are replaced, and the text is cut after `most` characters."""
    # This text is longer than the result, so that a secret at the cut is still recognized.
    text = _KEYS.sub(REDACTED, text[: most + MAX_SEARCHED])
    text = _ASSIGNED.sub(rf"\1{REDACTED}", _FORMS.sub(REDACTED, text))
    return _unicode(text[:most])


def _unicode(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def recorded(arguments: Any, by_hash: Collection[str]) -> Any:
    """The arguments of a call for the record, as `redacted`. Parameters in `by_hash` are replaced by their hash."""
    if not by_hash or not isinstance(arguments, Mapping):
        return redacted(arguments)
    kept = redacted({name: value for name, value in arguments.items() if name not in by_hash})
    return kept | {name: _named(arguments[name]) for name in by_hash if name in arguments}


def of_refused(arguments: Any) -> Any:
    """The arguments of a refused call, which are JSON; only ``{$hash, size_bytes}`` if they are large."""
    data = canonical(arguments)
    return arguments if len(data) <= MAX_REFUSED else _hashed(data)


def _hashed(data: bytes) -> dict[str, Any]:
    from blake3 import blake3

    return {"$hash": f"b3:{blake3(data).hexdigest()}", "size_bytes": len(data)}


def _named(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        return REDACTED
    return _hashed(value.encode("utf-8", "surrogatepass"))


#: Names up to this length are cached, because the same parameters are used in many calls.
MAX_REMEMBERED = 64


@lru_cache(4096)
def _of_key(key: str) -> tuple[str | None, bool]:
    """A key as it appears in the record, or None if it may contain a secret; and whether its value is a secret."""
    shown = None if _FORMS.search(key) or _ASSIGNED.search(key) else _unicode(key)
    return shown, _NAMES.search(key) is not None


class _Redaction:
    """Creates one copy. `left` is the remaining part of `MAX_ALL`, `searchable` that of `MAX_SEARCHED_IN_ALL`."""

    def __init__(self) -> None:
        self.left = MAX_ALL
        self.searchable = MAX_SEARCHED_IN_ALL

    def of(self, value: Any, level: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, int | float):
            self.left -= 8
            if isinstance(value, int) and not -(2**63) <= value < 2**64:
                return {"$integer_bits": value.bit_length()}
            return value
        if isinstance(value, Mapping):
            if level >= MAX_LEVELS or self.left <= 0:
                return {"$object": len(value)}
            kept = {}
            for key, item in islice(value.items(), MAX_VALUES):
                if type(key) is str and len(key) <= MAX_REMEMBERED:
                    shown, is_secret = _of_key(key)
                else:
                    shown, is_secret = None, _NAMES.search(str(key)[:MAX_SEARCHED]) is not None
                if shown is not None:
                    self.left -= len(shown) + 8
                else:
                    text = self._text(str(key))
                    shown = text if isinstance(text, str) else f"{text['$text']} {text['sha256']}"
                if is_secret and item not in (None, "", True, False) and not _is_count(str(key), item):
                    kept[shown] = REDACTED
                else:
                    kept[shown] = self.of(item, level + 1)
            return kept if len(value) <= MAX_VALUES else {**kept, "$more": len(value) - MAX_VALUES}
        if isinstance(value, list | tuple):
            if level >= MAX_LEVELS or self.left <= 0:
                return [f"… {len(value)} values"]
            items = [self.of(v, level + 1) for v in value[:MAX_VALUES]]
            return items if len(value) <= MAX_VALUES else [*items, f"… {len(value) - MAX_VALUES} more"]
        self.left -= 8
        return {"$type": type(value).__name__[:100]}

    def _text(self, value: str) -> Any:
        self.left -= min(len(value), MAX_TEXT) + 8
        # A word, such as a hash, is no secret. Of the forms, one alone has nothing but letters and digits.
        is_word = value.isalnum() and len(value) <= MAX_TEXT and "akia" not in value.lower()
        if not is_word:
            searched = value[:MAX_SEARCHED]
            self.searchable -= len(searched)
            is_searched = self.searchable >= 0
            named = not is_searched or _ASSIGNED.search(searched)
            if (is_searched and _FORMS.search(searched)) or (named and len(value) <= MAX_TEXT):
                return REDACTED
            if len(value) > MAX_TEXT:
                data = value.encode("utf-8", "surrogatepass")
                return {
                    "$text": REDACTED if named else _unicode(value[:60]) + "…",
                    "size_bytes": len(data),
                    "sha256": hashlib.sha256(data).hexdigest(),
                }
        return value if value.isascii() else _unicode(value)


def _is_count(name: str, value: Any) -> bool:
    return type(value) in (int, float) and _COUNTS.search(name) is not None
