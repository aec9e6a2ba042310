"""One word of a command, as far as it is known before bash runs it; and the reason why a command cannot be judged."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Stands in a word for each part that is not known.
HOLE = "\0"
#: A part that is not known, and can hold `..`.
AWAY = f"{HOLE}/../{HOLE}"

#: Longer words match no pattern: backtracking takes time that grows with the square of the length.
MAX_MATCHED = 1000


class Word(NamedTuple):
    """`text` is what the program gets; `single` says that it is exactly one word, neither none nor several.

    `marks` are the marks in it, see `marks`.
    """

    text: str
    known: bool = True
    single: bool = True
    marks: str = ""

    def fits(self, pattern: str) -> bool:
        """Whether the word is known and matches the whole of a verbose regular expression."""
        return self.known and len(self.text) <= MAX_MATCHED and re.fullmatch(pattern, self.text, re.VERBOSE) is not None


#: Any number of unknown words.
ANY = Word(HOLE, known=False, single=False)


class Unclear(Exception):
    """A command that is not known to be ordinary: `why` in a sentence, and the part of the text that it is `about`."""

    def __init__(self, why: str, about: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.about = about


class Unreadable(Unclear):
    """A text whose words and operators cannot be told with certainty."""
