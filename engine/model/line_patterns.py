"""Match regular expressions from agents against lines. With RE2, the time is linear in the size of the text.

Python's own `re` takes exponential time for some patterns. A pattern is matched against each line separately. Searching a text of
many lines as a whole is much faster, so this is done where possible: RE2 is configured not to match newlines, and ``^`` and ``$``
match at the ends of lines. A pattern without special characters is searched as plain text.

A text is UTF-8. Its lines end with ``\\n``, which is not part of the line. Text after the last ``\\n`` is also a line, unless it is
empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure

#: The maximum length of a pattern, in characters.
MAX_PATTERN = 1000
#: The most bytes that RE2 may use for a pattern. A pattern that needs more is refused.
_MEMORY = 8 << 20
_SPECIAL = frozenset("\\^$.|?*+()[]{}")

#: Constructs that may have another meaning in a text of many lines: ends of the text, bytes, quoting, disabled flags.
_NEEDS_SINGLE_LINES = re.compile(r"\\[AzCQ]|\(\?[A-Za-z]*-")

#: Replacements for constructs that RE2 does not support, by a part of RE2's message.
_ADVICE = (
    (r"\(\?<?[=!]", "RE2 has no lookaround, (?=…) and the like: search for less, and filter the lines that are found"),
    (
        r"sequence: \\[1-9]|operator: \(\?P",
        "RE2 has no backreferences: write the text again, or filter the lines that are found",
    ),
    (r"sequence: \\Z", "write $ for the end of the line"),
    (r"sequence: \\[uU]", r"write the character itself, or \x{…} with its number in hexadecimal"),
    (r"escape sequence", r"put a backslash only before a special character, or write one of \d \w \s \b \t"),
    (r"bad repetition operator", "RE2 has no possessive repetition; write (?:a*)* to repeat a repetition"),
    (r"perl operator|capture group", "write (?:…) for a group, (?P<name>…) for a named one, (?i) to ignore case"),
    (r"repetition size", "RE2 repeats up to 1000 times; write * or + for any number"),
    (r"too large", "write a shorter pattern, or smaller numbers of repetitions"),
)


class LinePattern:
    """A pattern in RE2's syntax that is matched against lines."""

    def __init__(self, pattern: str, ignore_case: bool = False) -> None:
        """Compile a pattern.

        Raises:
            Failure: `invalid_arguments` if the pattern is too long or invalid, or if it contains a newline.
        """
        _demand_text(pattern)
        plain = not ignore_case and _SPECIAL.isdisjoint(pattern)
        self._single_lines = not plain and _NEEDS_SINGLE_LINES.search(pattern) is not None
        self._find = _plain(pattern) if plain else _expression(pattern, ignore_case, self._single_lines)

    def matches(self, line: str) -> bool:
        """Whether the pattern matches in a line."""
        return self._find(line.encode("utf-8", "replace"), 0) >= 0

    def lines(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """The number (from 1) and the content of each line in which the pattern matches."""
        if not text:
            return
        if self._single_lines:
            lines = text.removesuffix(b"\n").split(b"\n")
            yield from ((n, line) for n, line in enumerate(lines, 1) if self._find(line, 0) >= 0)
            return
        # No line begins after the last newline, although `^` and `$` match there.
        last = len(text) - text.endswith(b"\n")
        number, counted, start = 1, 0, 0
        while 0 <= (at := self._find(text, start)) <= last:
            number += text.count(b"\n", counted, at)
            counted = at
            end = text.find(b"\n", at)
            end = len(text) if end < 0 else end
            yield number, text[text.rfind(b"\n", 0, at) + 1 : end]
            start = end + 1
            if start > last:
                return


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that returns whether `pattern` matches in a line.

    Raises:
        Failure: See `LinePattern`.
    """
    return LinePattern(pattern).matches


#: Returns the offset of the first match at or after a given offset of a text; -1 if there is no match.
_Find = Callable[[bytes, int], int]


def _plain(pattern: str) -> _Find:
    wanted = pattern.encode()
    return lambda text, at: text.find(wanted, at)


def _expression(pattern: str, ignore_case: bool, single_lines: bool) -> _Find:
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    options.case_sensitive = not ignore_case
    flags = "" if single_lines else "(?m)"
    try:
        search: Any = re2.compile(f"{flags}{pattern}".encode(), options).search
    except re2.error as error:
        reason: Any = error.args[0]
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        reason = reason.replace(f" {flags}", " ")
        hint = next((hint for part, hint in _ADVICE if re.search(part, reason)), None)
        raise _invalid(f"{pattern[:80]!r} is not a valid pattern: {reason}", hint) from None
    finally:
        # Otherwise the library would retain the last 128 expressions with all their memory.
        re2.purge()

    def find(text: bytes, at: int) -> int:
        match = search(text, at)
        return -1 if match is None else int(match.start())

    return find


def _demand_text(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise _invalid(f"it has {len(pattern):,} characters, more than {MAX_PATTERN:,}")
    if any("\ud800" <= c <= "\udfff" for c in pattern):
        raise _invalid("it holds half a surrogate pair, which no text does")
    if "\n" in pattern or any(escape[0] == r"\n" for escape in re.finditer(r"\\.", pattern)):
        hint = "search for one of the lines, and read_file around it"
        raise _invalid("it asks for a newline, and is matched against one line at a time", hint)


def _invalid(why: str, hint: str | None = None) -> Failure:
    return refused_argument("pattern", why, hint=hint, said=f"pattern: {why}")
