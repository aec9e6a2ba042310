"""The result of judging a command: a verdict for each of its parts, and one for all of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

from albert_tools.engine.shell.word import HOLE, Word

#: ``ordinary`` is on the allow-list. The others ask: ``dangerous`` matches a named danger, ``unknown`` does not.
Verdict = Literal["dangerous", "unknown", "ordinary"]

#: Characters of a part that are shown.
MAX_SHOWN = 120


class Part(NamedTuple):
    """One of the commands that a text runs.

    `text` is the command as arguments, quoted as a shell needs it, with ``…`` for what is not known. `argv` is the same as a
    list, with NUL for what is not known; it is empty where the part is not a call. `danger` names the danger, `why` is a sentence
    about it, and `hint` says what to do instead. `unreadable` says that the words themselves are not certain. `starts` says that
    the program can start others, so that it could run its own words as a command. `only_runs` says that an ordinary command only
    runs the commands in its arguments, which are parts of their own.
    """

    verdict: Verdict
    text: str
    argv: tuple[str, ...] = ()
    danger: str = ""
    why: str = ""
    hint: str = ""
    unreadable: bool = False
    starts: bool = False
    only_runs: bool = False


class Judgement(NamedTuple):
    """All parts. The commands in a text for `sh -c` come before it. `folders` are those in which a part may start, relative to the
    workspace or absolute; a NUL stands for an unknown folder. `within` are the commands that a program which is not ordinary could
    start: in a text for a shell, or behind another program that starts one."""

    parts: tuple[Part, ...]
    text: str
    folders: tuple[str, ...] = ("",)
    within: tuple[Part, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The strictest verdict of all parts; ``ordinary`` where there are none."""
        verdicts = {part.verdict for part in self.parts}
        return "dangerous" if "dangerous" in verdicts else "unknown" if "unknown" in verdicts else "ordinary"


def shown(text: str) -> str:
    """A part as a person is shown it: on one line, and not too long."""
    line = "".join(
        c if c.isprintable() else "\N{SYMBOL FOR NEWLINE}" if c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…"


def text_of(words: Sequence[Word]) -> str:
    """The words as they would be written."""
    return " ".join(shlex.quote(w.text) if w.known else w.text.replace(HOLE, "…") for w in words)
