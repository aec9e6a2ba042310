"""What a word comes to: the arguments that bash would make of it, as far as they can be told.

Braces are expanded, quotes removed, `~` and `$HOME` written as ``~``. Everything else that is known only when it runs is a hole in
the argument, written as NUL, which no argument can hold. A hole outside quotes may come to several arguments, or to none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from albert_tools.engine.shell.reading_limits import MAX_BRACES, MAX_MADE, MAX_OPENING, Unreadable
from albert_tools.engine.shell.syntax import Hole, Word

#: Stands for what isn't known.
HOLE = "\0"

#: A sequence in braces whose members have one spelling.
_SEQUENCE = re.compile(r"(-?[1-9][0-9]{0,5}|0|[A-Za-z])\.\.(-?[1-9][0-9]{0,5}|0|[A-Za-z])(?:\.\.(-?[1-9][0-9]{0,3}))?")

#: Variables that are numbers, so that they are one word.
_NUMBERS = frozenset("#?$!")

#: What bash makes something else of, in words without quotes.
_SPECIAL = re.compile(r"[*?\[{]")

#: One character of a word, with whether it is quoted; or a hole.
_Atom = tuple[str, bool]


class Arg(NamedTuple):
    """An argument. `glob` says that bash puts names of files in its place; `splits`, that it may be several arguments or none.

    `escaped` is `text` with the characters quoted that would be wildcards, so that it can be matched as a pattern.
    """

    text: str
    glob: bool = False
    splits: bool = False
    escaped: str = ""

    @property
    def known(self) -> bool:
        """Whether it is this text and nothing else."""
        return HOLE not in self.text and not self.glob and not self.splits

    @property
    def pattern(self) -> str:
        """A shell pattern of all that it could be."""
        return (self.escaped or re.sub(r"([*?\[\\])", r"[\1]", self.text)).replace(HOLE, "*")


def plain(text: str) -> Arg:
    """The argument that is this text."""
    return Arg(text)


def expanded(words: Iterable[Word], known_home: bool = True) -> list[Arg]:
    """The arguments that words come to. `known_home` is whether ``$HOME`` is still what it was.

    Raises:
        Unreadable: braces make too many.
    """
    found: list[Arg] = []
    for count, word in enumerate(words):
        found += _word(word, known_home, braces=True)
        if len(found) > count + MAX_MADE:
            raise Unreadable("braces make too many words")
    return found


def value(word: Word, known_home: bool = True) -> Arg:
    """The text that a word comes to where it is neither split nor expanded: assigned, redirected to, a here-document's."""
    found = _word(word, known_home, braces=False)
    return found[0] if found else plain("")


def _word(word: Word, known_home: bool, braces: bool) -> list[Arg]:
    literal = word.literal
    if literal and literal[0] != "~" and not _SPECIAL.search(literal):
        return [Arg(literal)]
    atoms: list[_Atom] = []
    splits: set[int] = set()
    quoted = False
    for index, piece in enumerate(word.pieces):
        if isinstance(piece, Hole):
            if piece.name == "HOME" and known_home:
                atoms.append(("~", True))
                continue
            if (not piece.quoted and piece.name not in _NUMBERS) or piece.name == "@":
                splits.add(len(atoms))
            atoms.append((HOLE, True))
        else:
            quoted = quoted or piece.quoted
            if index == 0 and not piece.quoted and re.match(r"~[+\-0-9]", piece.text):
                atoms.append((HOLE, True))
                continue
            atoms += [(char, piece.quoted) for char in piece.text]
    several = bool(splits)
    opening = atoms.count(("{", False)) if braces else 0
    if opening > MAX_OPENING:
        raise Unreadable("there are too many braces in a word")
    if opening:
        made = _braces(atoms)
    else:
        made = [atoms]
    found = []
    for one in made:
        # What is nothing at all and was never quoted is no argument.
        if one or quoted:
            found.append(_arg(one, several))
    return found


def _arg(atoms: Sequence[_Atom], splits: bool) -> Arg:
    active = "".join(char for char, quoted in atoms if not quoted)
    # A bracket that is never closed is only a bracket.
    glob = "*" in active or "?" in active or ("[" in active and "]" in active.partition("[")[2])
    escaped = "".join(f"[{c}]" if quoted and c in "*?[" else c for c, quoted in atoms) if glob else ""
    return Arg("".join(c for c, _ in atoms), glob, splits, escaped)


def _braces(atoms: list[_Atom]) -> list[list[_Atom]]:
    """Every word that braces make of one, in bash's order."""
    at = 0
    while at < len(atoms):
        if atoms[at] == ("{", False):
            if at and atoms[at - 1] == ("$", False):
                raise Unreadable("braces stand behind a $")
            found = _inside(atoms, at)
            if found is not None:
                members, end = found
                heads = [atoms[:at] + m for member in members for m in _braces(member)]
                tails = _braces(atoms[end:])
                if len(heads) * len(tails) > MAX_BRACES:
                    raise Unreadable("braces make too many words")
                return [head + tail for head in heads for tail in tails]
        at += 1
    return [atoms]


def _inside(atoms: list[_Atom], start: int) -> tuple[list[list[_Atom]], int] | None:
    """The members of ``{a,b}`` or ``{1..3}`` and the position behind it; None where the brace is only a brace."""
    depth = 0
    cuts = [start]
    for at in range(start, len(atoms)):
        atom = atoms[at]
        if atom == ("{", False):
            depth += 1
        elif atom == (",", False) and depth == 1:
            cuts.append(at)
        elif atom == ("}", False):
            depth -= 1
            if depth == 0:
                if len(cuts) > 1:
                    cuts.append(at)
                    return [atoms[a + 1 : b] for a, b in itertools.pairwise(cuts)], at + 1
                inside = atoms[start + 1 : at]
                text = "".join(c for c, _ in inside)
                if ".." in text and not any(q and c != HOLE for c, q in inside):
                    return [[(c, False) for c in member] for member in _sequence(text)], at + 1
                if any(c in ("{", ",") and not q for c, q in inside):
                    raise Unreadable("braces don't fit each other")
                return None
    if any(a == (",", False) for a in atoms[start:]) or any(a == ("}", False) for a in atoms[start:]):
        raise Unreadable("braces don't fit each other")
    return None


def _sequence(text: str) -> list[str]:
    found = _SEQUENCE.fullmatch(text)
    if found is None:
        # Also what isn't a sequence after all: then it is longer than what was looked for, but never taken for known.
        return [HOLE]
    first, last, step = found[1], found[2], abs(int(found[3] or 1))
    if first.lstrip("-").isdigit() != last.lstrip("-").isdigit():
        return [HOLE]
    letters = first.isalpha()
    low, high = (ord(first), ord(last)) if letters else (int(first), int(last))
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    if len(numbers) > MAX_BRACES:
        raise Unreadable("braces make too many words")
    # Between capitals and small letters lie characters that quote.
    if letters and first.isupper() != last.isupper():
        return [HOLE]
    return [chr(n) if letters else str(n) for n in numbers]
