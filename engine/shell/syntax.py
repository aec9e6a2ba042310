"""What a shell command is made of, as far as judging needs it: scripts of pipelines of commands, each of words.

A word is kept in the pieces that quoting and expansion make of it, because what it comes to follows from those alone: a text, which
is known, or a hole, which is not. Whatever runs inside a word (a substitution) hangs on the word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Text(NamedTuple):
    """``abc``, ``'abc'``: characters that stand for themselves. Where they are not quoted, braces and patterns among them count."""

    text: str
    quoted: bool


class Hole(NamedTuple):
    """``$x``, ``$(…)``: what can't be told before it runs. `name` is the variable's where it is nothing but a variable."""

    name: str
    quoted: bool


Piece = Text | Hole


@dataclass(frozen=True, slots=True)
class Word:
    """``"$x"/a'b'``. `scripts` are those of the substitutions in it; `start` and `end` are offsets into the source."""

    pieces: tuple[Piece, ...]
    scripts: tuple[Script, ...]
    start: int
    end: int

    @property
    def literal(self) -> str | None:
        """Its text where nothing in it is unknown and nothing is quoted; else None."""
        if len(self.pieces) == 1:
            # As nearly all are.
            only = self.pieces[0]
            return only.text if isinstance(only, Text) and not only.quoted else None
        if all(isinstance(p, Text) and not p.quoted for p in self.pieces):
            return "".join(p.text for p in self.pieces if isinstance(p, Text))
        return None


@dataclass(slots=True)
class Redirect:
    """``2>file``, ``<<EOF``. `body` is a here-document's, which is read after the rest of its line."""

    operator: str
    target: Word
    body: Word | None = None


class Assignment(NamedTuple):
    """``NAME=value``, or ``NAME=(several values)``."""

    name: str
    values: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Simple:
    """``A=1 program argument >file``."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Compound:
    """``( … )``, ``if …``, ``for x in words; do …``, ``name() { … }``: scripts, and the words that stand beside them."""

    kind: str
    scripts: tuple[Script, ...]
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    name: str = ""


Command = Simple | Compound


@dataclass(frozen=True, slots=True)
class Script:
    """``a | b; c && d``: pipelines, each of one command or more. What joins them doesn't count: any of them may run."""

    pipelines: tuple[tuple[Command, ...], ...]
