"""Marks: letters that stand for what fills the holes of a command's template, while the template is read.

A *bare* mark stands for letters, digits, ``-`` and ``_``, or nothing. They mean nothing to a shell, whether they are quoted or not.
A *quoted* mark, which is alone in single quotes, stands for a text that `shlex.quote` has made one word. This is one word only
where quotes begin: not within others, not behind a ``$``, not in backquotes. Elsewhere the reader refuses it.
"""

from __future__ import annotations

import re

from albert_tools.engine.shell.word import HOLE, Unreadable, Word

_FIRST_BARE, _FIRST_QUOTED = 0xA000, 0xA200
#: The most marks of a kind in one template.
MAX_MARKS = 0x200

MARK = re.compile("[\ua000-\ua3ff]")
_QUOTED = re.compile("[\ua200-\ua3ff]")
#: If the text is empty, what is behind it becomes a comment, or joins the next word.
_UNSAFE_IF_EMPTY = re.compile(r"\\[\ua000-\ua1ff]|[\ua000-\ua1ff]\#")


def bare(number: int) -> str:
    """The mark of a text of letters and digits."""
    return chr(_FIRST_BARE + number)


def quoted(number: int) -> str:
    """The mark of a text that is quoted, in the quotes that the text would have."""
    return f"'{chr(_FIRST_QUOTED + number)}'"


def with_marks(word: Word, kind: str, spelled: str) -> Word:
    """A word whose marks are taken for unknown text. `kind` is the kind of its node, and `spelled` its text.

    Raises:
        Unreadable: what fills the hole could change where the word begins or ends.
    """
    marks = "".join(MARK.findall(word.text))
    if not marks:
        return word
    is_whole = kind == "raw_string" and len(word.text) == 1
    if _UNSAFE_IF_EMPTY.search(spelled) or (_QUOTED.search(marks) and not is_whole):
        raise Unreadable("a hole is not a word of its own", spelled)
    single = word.single and (kind != "word" or len(word.text) > len(marks))
    return Word(MARK.sub(HOLE, word.text), False, single, word.marks + marks)
