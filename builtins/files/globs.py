"""Patterns of paths, in the syntax of `.gitignore` and shells, matched in linear time.

All patterns of a call become one regular expression for RE2, which takes time linear in the path and a bounded amount of memory.
(`pathspec` would use Python's `re`, which takes very long for some patterns with many stars.)

A pattern without a slash is matched against the last name of a path, at any depth. A pattern with a slash is matched against the
whole path. ``*``, ``?`` and ``[abc]`` match within a name, ``**`` matches any number of names, and ``{a,b}`` matches a or b.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure

#: Characters of a pattern, and alternatives that its braces may produce.
MAX_PATTERN = 1000
MAX_ALTERNATIVES = 64

#: Names in a pattern, in all alternatives of its braces.
MAX_PARTS = 500

#: Bytes that RE2 may use for all patterns of a call.
_MEMORY = 16 << 20
#: Characters of the expression for all patterns of a call. RE2 parses it outside of its limit of memory, and holds up the other
#: threads meanwhile. A thousand patterns of 30 characters have less.
_MAX_EXPRESSION = 64 * 1024

#: In a name: an escaped character, a set (inverted or not), a character, or a backslash at the end.
_TOKEN = re.compile(r"\\(.)|\[([!^]?+)(.[^]]*)\]|([^\\])|\\", re.DOTALL)


class Globs:
    """Some patterns. A path matches if it matches at least one of them."""

    def __init__(self, patterns: Iterable[str], field: str = "pattern") -> None:
        """`field` names the argument in the failure.

        Raises:
            Failure: `invalid_arguments`: a pattern is invalid, or all patterns together are too large.
        """
        expressions: list[str] = []
        left = _MAX_EXPRESSION
        for expression in (each for pattern in patterns for each in _expressions(pattern, field)):
            left -= len(expression) + 1
            if left < 0:
                raise _too_large(field)
            expressions.append(expression)
        self._fits = _compiled(expressions, field) if expressions else None

    def __bool__(self) -> bool:
        return self._fits is not None

    def matches(self, path: str) -> bool:
        """Whether a path matches. The path has ``/`` between names, but not at its beginning or end."""
        return self._fits is not None and self._fits(path.encode("utf-8", "replace")) is not None


def _compiled(expressions: list[str], field: str) -> Callable[[bytes], object]:
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True
    options.dot_nl = True
    try:
        fits: Callable[[bytes], object] = re2.compile("|".join(expressions).encode(), options).fullmatch
    except re2.error:
        raise _too_large(field) from None
    finally:
        # Otherwise the library would store the last 128 expressions, each with all its memory.
        re2.purge()
    return fits


def _too_large(field: str) -> Failure:
    return refused_argument(
        field, "the patterns are too large together", hint="give fewer or shorter patterns", rule="pattern"
    )


def _expressions(pattern: str, field: str) -> Iterator[str]:
    """A regular expression for each alternative of a pattern."""
    if len(pattern) > MAX_PATTERN:
        raise _invalid(field, pattern, f"it has more than {MAX_PATTERN:,} characters")
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in pattern):
        raise _invalid(field, pattern, "a path can't hold a NUL or half a surrogate pair")
    alternatives = _alternatives(pattern, field)
    if sum(each.count("/") + 1 for each in alternatives) > MAX_PARTS:
        raise _invalid(field, pattern, f"it has more than {MAX_PARTS} names, in all alternatives of its braces")
    for each in alternatives:
        parts = [part for part in each.removeprefix("./").split("/") if part]
        if not parts:
            raise _invalid(field, pattern, "it is empty")
        if ".." in parts:
            raise _invalid(field, pattern, "no path holds '..'; name the folder to look in with `path`")
        *above, last = parts
        at_any_depth = "/" not in each
        start = (
            "(?:.*/)?"
            if at_any_depth
            else "".join("(?:[^/]+/)*" if part == "**" else f"{_name(part, pattern, field)}/" for part in above)
        )
        yield start + (".+" if last == "**" else _name(last, pattern, field))


def _alternatives(pattern: str, field: str) -> list[str]:
    """Expands the braces of a pattern into alternatives. Nested braces are expanded from the inside out."""
    alternatives, ahead = [], [pattern]
    while ahead:
        text = ahead.pop()
        inner = re.search(r"\{([^{}]*)\}", text)
        if inner is None or "," not in inner[1]:
            alternatives.append(text)
        else:
            ahead += [text[: inner.start()] + choice + text[inner.end() :] for choice in inner[1].split(",")]
        if len(alternatives) + len(ahead) > MAX_ALTERNATIVES:
            raise _invalid(field, pattern, f"its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return alternatives


def _name(part: str, pattern: str, field: str) -> str:
    """The regular expression for a part without a slash."""
    pieces = []
    for token in _TOKEN.finditer(part):
        escaped, inverted, members, plain = token.groups()
        if members is not None:
            pieces.append(_set(members, bool(inverted)))
        elif escaped is None and plain is None:
            raise _invalid(field, pattern, "it ends with a backslash")
        elif plain == "[":
            raise _invalid(field, pattern, "'[' has no ']'; write [[] for the character itself")
        else:
            pieces.append({"*": "[^/]*", "?": "[^/]"}.get(plain) or _literal(escaped or plain))
    return "".join(pieces)


def _set(members: str, inverted: bool) -> str:
    ranges = re.findall(r"(.)-(.)|(.)", members, re.DOTALL)
    spelled = "".join(
        f"{_literal(low or single)}-{_literal(high or single)}" for low, high, single in ranges if low <= high
    )
    # A set such as [z-a] is empty, and no name contains a slash.
    return f"[^/{spelled}]" if inverted else f"[{spelled}]" if spelled else r"[^\x00-\x{10FFFF}]"


def _literal(character: str) -> str:
    return character if character.isascii() and character.isalnum() else rf"\x{{{ord(character):X}}}"


def _invalid(field: str, pattern: str, why: str) -> Failure:
    wrong = f"{pattern[:80]!r} is not a valid pattern: {why}"
    return refused_argument(field, wrong, rule="pattern", said=f"{field}: {wrong}")
