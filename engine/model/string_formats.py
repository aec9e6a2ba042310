"""Conditions on strings that JSON Schema cannot express. They are values of ``format``.

JSON Schema counts characters, but the operating system counts bytes. It has no condition for NUL or for the parts of a path. If a
string does not match a ``pattern``, JSON Schema cannot explain why. Other validators ignore an unknown ``format``, so they can
still use the schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

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


def _bytes(text: str, most: int) -> list[Fault]:
    """The rule `max_bytes`. It is not violated if there are too many characters, because ``maxLength`` already reports that."""
    # A character has at most 4 bytes, so most texts need not be encoded for the check.
    if len(text) * 4 > most >= len(text) and not text.isascii():
        count = len(text.encode("utf-8", "surrogatepass"))
        if count > most:
            return [("max_bytes", f"must have {most:,} bytes or fewer in UTF-8, has {count:,}")]
    return []


def _path(text: str, most: int) -> list[Fault]:
    faults = []
    if ".." in text and ".." in text.split("/"):
        faults = [("path_traversal", "must not contain '..'; write the path from the workspace down")]
    return faults + _argument(text, most)


def _argument(text: str, most: int) -> list[Fault]:
    faults = [("nul", "must not contain a NUL character")] if "\0" in text else []
    return faults + _bytes(text, most)


def _entry(text: str) -> list[Fault]:
    faults, count = [], text.count("=")
    if count != 1:
        faults = [("one_equals", f"must be NAME=value with exactly one '=', has {count or 'none'}")]
    elif text.startswith("="):
        faults = [("one_equals", "must have a name before its '='")]
    return faults + _argument(text, MAX_ENTRY)


def _hash(text: str) -> list[Fault]:
    if _HASH.fullmatch(text):
        return []
    digits = f"{HASH_BYTES} bytes as {2 * HASH_BYTES} lower-case hex digits"
    return [("hash", f"must be {digits}, with or without b3: before them")]


#: The check of each format. It returns all violations.
FORMATS: dict[str, Callable[[str], list[Fault]]] = {
    "albert-path": partial(_path, most=MAX_PATH),
    "albert-folder": partial(_path, most=MAX_WORKING_DIRECTORY),
    "albert-command": partial(_argument, most=MAX_COMMAND),
    "albert-argument": partial(_argument, most=MAX_ENTRY),
    "albert-entry": _entry,
    "albert-hash": _hash,
    "albert-prompt-hash": lambda text: _hash(text) if text else [],
    "albert-content": partial(_bytes, most=MAX_WRITE),
    "albert-edit": partial(_bytes, most=MAX_EDIT),
}
