"""Patterns that come from an agent, matched in time that is linear in the text, whatever the pattern.

A pattern of Python's own `re` can take longer than the age of the world. RE2 (Google's library, the extra `patterns`) can't. Its
syntax without any special character is plain text, and that is searched for without the library as well; so a pattern means the
same with it and without it, or is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import install_command

#: Characters of a pattern.
MAX_PATTERN = 1000
#: Bytes that RE2 may use for a pattern; one that needs more is refused.
_MEMORY = 8 << 20
_SPECIAL = frozenset("\\^$.|?*+()[]{}")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a line holds a match of `pattern` (RE2's syntax).

    Raises:
        Failure: `invalid_arguments`: too long, not a pattern, or more than plain text while there is no RE2.
    """
    if len(pattern) > MAX_PATTERN:
        raise Failure("invalid_arguments", f"the pattern has {len(pattern)} characters, more than {MAX_PATTERN}")
    if _SPECIAL.isdisjoint(pattern):
        return lambda text: pattern in text
    try:
        import re2
    except ImportError as error:
        raise Failure(
            "invalid_arguments",
            "a pattern that is more than plain text needs RE2, which is not installed",
            hint=f"search for plain text, or: {install_command('patterns')}",
        ) from error
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason: Any = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        said = f"{pattern[:80]!r} is no pattern: {reason}"
        raise Failure("invalid_arguments", said, hint=advice(reason)) from error
    return lambda text: compiled.search(text) is not None


def advice(reason: object) -> str | None:
    """What to do about a pattern that RE2 refuses, for what others have and it hasn't."""
    if "perl operator" in str(reason):
        return "RE2 has no lookaround, (?=…) and the like: search for less, and look through what is found"
    if "escape sequence" in str(reason):
        return "RE2 has no backreferences and few escapes; a character that means something is escaped by \\ or [ ]"
    return None
