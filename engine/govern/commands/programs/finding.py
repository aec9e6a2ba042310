"""What is found in a call of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from albert_tools.engine.govern.commands.expand import HOLE, Arg
from albert_tools.engine.govern.commands.places import place


class Finding(NamedTuple):
    """`pattern` names a dangerous pattern; where it is empty, the call can't be told, and `why` says why."""

    pattern: str
    why: str = ""


#: Looks at a program's arguments, without its name.
Look = Callable[[Sequence[Arg]], Iterator[Finding]]


def unknown(args: Iterable[Arg]) -> Iterator[Finding]:
    """One finding where any of them isn't known."""
    if any(HOLE in arg.text or arg.splits for arg in args):
        yield Finding("", "what it is given isn't known before it runs")


def written(args: Iterable[Arg]) -> Iterator[Finding]:
    """Of what is written to."""
    for arg in args:
        found = place(arg)
        if found:
            yield Finding(found)
        yield from unknown([arg])
