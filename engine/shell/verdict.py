"""What judging a command comes to: a verdict for each of its parts, and one for all of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

from albert_tools.engine.shell.dangers import PATTERNS
from albert_tools.engine.shell.expand import HOLE, Arg

#: ``dangerous`` fits a pattern, ``dynamic`` can't be told before it runs, ``ordinary`` is neither.
Verdict = Literal["dangerous", "dynamic", "ordinary"]

#: Characters of a part that are shown.
MAX_SHOWN = 120


class Part(NamedTuple):
    """One of the commands that a text runs.

    `text` is the command as arguments, quoted as a shell would need it, with ``…`` for what isn't known; `argv` the same as a list,
    with NUL for what isn't known. `pattern` names the dangerous pattern, `why` says in a sentence what is the matter with it, and
    `hint` what to do instead.
    """

    verdict: Verdict
    text: str
    argv: tuple[str, ...] = ()
    pattern: str = ""
    why: str = ""
    hint: str = ""
    #: Whether what makes it dynamic is that it runs a file of the workspace, which the owner can vouch for by naming the command.
    file: bool = False


class Judgement(NamedTuple):
    """All parts, in the order in which they were found."""

    parts: tuple[Part, ...]

    @property
    def verdict(self) -> Verdict:
        """The gravest of all parts; ``ordinary`` where there are none."""
        found = {part.verdict for part in self.parts}
        return "dangerous" if "dangerous" in found else "dynamic" if "dynamic" in found else "ordinary"

    def first(self, verdict: Verdict) -> Part | None:
        """The first part of this verdict."""
        return next((part for part in self.parts if part.verdict == verdict), None)


def shown(text: str) -> str:
    """A part as a person is shown it: on one line, and not too long."""
    line = "".join(
        c if c.isprintable() else "\N{SYMBOL FOR NEWLINE}" if c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…"


def text_of(args: Sequence[Arg]) -> str:
    """Arguments as they would be written."""
    return " ".join(
        arg.text.replace(HOLE, "…") if HOLE in arg.text or arg.glob else shlex.quote(arg.text) for arg in args
    )


def dangerous(pattern: str, text: str, argv: tuple[str, ...] = (), why: str = "") -> Part:
    """A part that fits a pattern."""
    known = PATTERNS[pattern]
    return Part("dangerous", text, argv, pattern, f"{known.why}{f' ({why})' if why else ''}", known.instead)


def dynamic(text: str, argv: tuple[str, ...], why: str, file: bool = False) -> Part:
    """A part that can't be told before it runs."""
    hint = "write the command and its arguments out, without variables or code in between"
    if file:
        hint = "write the script's commands into the command itself, or let the owner name it under `allowed_commands`"
    return Part("dynamic", text, argv, "", why, hint, file)
