"""How much of a command is read. What goes beyond it isn't judged but asked about, so each figure only has to be ample."""

from __future__ import annotations

#: Characters of a command, all its nested ones included.
MAX_LENGTH = 32 * 1024

#: Levels of substitutions, groups and commands within commands. Each takes some ten frames of the interpreter's stack.
MAX_DEPTH = 24

#: Commands in one text.
MAX_COMMANDS = 2000

#: Words that braces make of one word.
MAX_BRACES = 256

#: Words that braces make in one text.
MAX_MADE = 4096

#: Braces that open in one word. Each is looked at together with all that follows it.
MAX_OPENING = 32

#: Characters of a path that holds wildcards, and of a program for sed or awk that is looked into.
MAX_PATTERN = 1024


class Unreadable(Exception):
    """The text can't be read with certainty; the message says what stands in the way."""
