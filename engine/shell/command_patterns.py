"""The owner's patterns of commands: words as a shell would read them, with ``*``.

``git status`` is that and nothing more. ``*`` by itself stands for any further words, also none (``ls *``, ``git * --stat``); in a
word it stands for any characters (``tests/*``).

A person who approves a command is offered the pattern that matches this command alone (`exact_pattern`).
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from functools import lru_cache

from albert_tools.engine.model.wildcards import Starred
from albert_tools.engine.shell.word import HOLE

#: Characters of the longest pattern that a person is offered. A longer one can't be read at a glance.
_MAX_OFFERED = 120


def matches(pattern: str, argv: Sequence[str]) -> bool:
    """Whether `argv` certainly matches. A NUL in a word is an unknown part."""
    return _fits(_words(pattern), argv, maybe=False)


def may_match(pattern: str, argv: Sequence[str]) -> bool:
    """Whether `argv` could match. An unknown word can be any text, and a program matches by its name in any folder."""
    words = _words(pattern)
    if _fits(words, argv, maybe=True):
        return True
    if not argv:
        return False
    name = posixpath.basename(argv[0]).lower()
    at = 1
    # Options of git before its subcommand, with or without a value.
    while name == "git" and at < len(argv) and (argv[at].startswith("-") or (at > 1 and argv[at - 1].startswith("-"))):
        at += 1
        if _fits(words, [name, *argv[at:]], maybe=True):
            return True
    return _fits(words, [name, *argv[1:]], maybe=True)


def names_a_program(pattern: str) -> bool:
    """Whether the first word of a pattern is a plain name, so that its author knew the program."""
    return "*" not in pattern.split(maxsplit=1)[0]


def exact_pattern(argv: Sequence[str]) -> str | None:
    """The pattern that matches `argv` and nothing else.

    None for an unknown word, and for text that a person could misread: other than ASCII, or very long. None for a word with a
    star, because in a pattern it would match other words too.
    """
    pattern = shlex.join(argv)
    if not argv or "*" in pattern or len(pattern) > _MAX_OFFERED:
        return None
    return pattern if pattern.isascii() and pattern.isprintable() else None


@lru_cache(maxsize=1024)
def _words(pattern: str) -> tuple[Starred | None, ...]:
    """Each word; None for any number of words."""
    try:
        words = shlex.split(pattern)
    except ValueError:
        words = pattern.split()
    found: list[Starred | None] = []
    for word in words:
        if word != "*":
            found.append(Starred.of(word))
        elif not found or found[-1] is not None:
            found.append(None)
    return tuple(found)


def _fits(words: Sequence[Starred | None], argv: Sequence[str], maybe: bool) -> bool:
    # Every position in the pattern that the words so far can have led to.
    at = _skipped({0}, words)
    for arg in argv:
        after: set[int] = set()
        for position in at:
            if position == len(words):
                continue
            word = words[position]
            if word is None:
                after.add(position)
            elif (maybe and HOLE in arg) or word.fits(arg):
                after.add(position + 1)
        if maybe and arg == HOLE:
            # It may be no word or several.
            after |= {further for position in at for further in range(position, len(words) + 1)}
        at = _skipped(after, words)
        if not at:
            return False
    return len(words) in at


def _skipped(at: set[int], words: Sequence[Starred | None]) -> set[int]:
    return at | {position + 1 for position in at if position < len(words) and words[position] is None}
