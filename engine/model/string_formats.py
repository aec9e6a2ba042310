"""Conditions on strings that JSON Schema cannot express. They are values of ``format``.

JSON Schema counts characters, but the operating system counts bytes. It has no condition for NUL or for the parts of a path. If a
string does not match a ``pattern``, JSON Schema cannot explain why. Other validators ignore an unknown ``format``, so they can
still use the schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from albert_tools.engine.model.bounds import (
    HASH_BYTES,
    MAX_COMMAND,
    MAX_EDIT,
    MAX_ENTRY,
    MAX_PATH,
    MAX_WORKING_DIRECTORY,
    MAX_WRITE,
)

#: A violated rule and its message.
Fault = tuple[str, str]

_HASH = re.compile(rf"(?:b3:)?[0-9a-f]{{{2 * HASH_BYTES}}}")


def _bytes(text: str, most: int) -> Iterator[Fault]:
    """The rule `max_bytes`. It yields nothing if there are too many characters, because ``maxLength`` already reports that."""
    # A character has at most 4 bytes, so most texts need not be encoded for the check.
    if len(text) * 4 > most >= len(text) and not text.isascii():
        count = len(text.encode("utf-8", "surrogatepass"))
        if count > most:
            yield "max_bytes", f"must have {most:,} bytes or fewer in UTF-8, has {count:,}"


def _no_nul(text: str) -> Iterator[Fault]:
    if "\0" in text:
        yield "nul", "must not contain a NUL character"


def _no_parent(text: str) -> Iterator[Fault]:
    if ".." in text and ".." in text.split("/"):
        yield "path_traversal", "must not contain '..'; write the path from the workspace down"


def _path(text: str, most: int) -> Iterator[Fault]:
    yield from _no_parent(text)
    yield from _argument(text, most)


def _argument(text: str, most: int) -> Iterator[Fault]:
    yield from _no_nul(text)
    yield from _bytes(text, most)


def _entry(text: str) -> Iterator[Fault]:
    count = text.count("=")
    if count != 1:
        yield "one_equals", f"must be NAME=value with exactly one '=', has {count or 'none'}"
    elif text.startswith("="):
        yield "one_equals", "must have a name before its '='"
    yield from _argument(text, MAX_ENTRY)


def _hash(text: str) -> Iterator[Fault]:
    if not _HASH.fullmatch(text):
        yield (
            "hash",
            f"must be {HASH_BYTES} bytes as {2 * HASH_BYTES} lower-case hex digits, with or without b3: before them",
        )


def _time(text: str) -> Iterator[Fault]:
    if not text:
        return
    try:
        datetime.fromisoformat(text)
    except ValueError:
        yield "time", "must be a date and time in ISO 8601, for example 2025-03-01T12:00:00Z, or empty"


#: The check of each format. A check yields all violations.
FORMATS: dict[str, Callable[[str], Iterator[Fault]]] = {
    "albert-path": lambda text: _path(text, MAX_PATH),
    "albert-folder": lambda text: _path(text, MAX_WORKING_DIRECTORY),
    "albert-command": lambda text: _argument(text, MAX_COMMAND),
    "albert-argument": lambda text: _argument(text, MAX_ENTRY),
    "albert-entry": _entry,
    "albert-hash": _hash,
    "albert-prompt-hash": lambda text: _hash(text) if text else iter(()),
    "albert-time": _time,
    "albert-content": lambda text: _bytes(text, MAX_WRITE),
    "albert-edit": lambda text: _bytes(text, MAX_EDIT),
}
