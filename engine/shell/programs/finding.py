"""What is found in a call of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from albert_tools.engine.shell.expand import HOLE, Arg
from albert_tools.engine.shell.places import place


class Finding(NamedTuple):
    """`pattern` names a dangerous pattern; where it is empty, the call can't be told, and `why` says why."""

    pattern: str
    why: str = ""


#: Looks at a program's arguments, without its name.
Look = Callable[[Sequence[Arg]], Iterator[Finding]]


def unknown(args: Iterable[Arg]) -> Iterator[Finding]:
    """One finding where any of them isn't known."""
    if any(HOLE in arg.text or arg.splits for arg in args):
        yield Finding("", "its arguments are known only when it runs")


def written(args: Iterable[Arg]) -> Iterator[Finding]:
    """Of what is written to."""
    for arg in args:
        found = place(arg)
        if found:
            yield Finding(found)
        yield from unknown([arg])


def naming(*options: str) -> Look:
    """A program of which some options, by how they begin, name programs or what is loaded as one; ``!`` at the end: that one alone.

    A long one may be shortened, as getopt takes it.
    """
    alone = {o[:-1] for o in options if o.endswith("!")}
    alone |= {o for o in options if len(o) == 2}
    begin = tuple(o for o in options if not o.endswith("!") and len(o) != 2)

    def look(args: Sequence[Arg]) -> Iterator[Finding]:
        for arg in args:
            name = arg.text.partition("=")[0]
            short = len(name) > 3 and name.startswith("--") and any(o.startswith(name) for o in begin)
            # Of one that isn't known it isn't known either which it is.
            if name in alone or arg.text[:2] in alone or arg.text.startswith(begin) or short or HOLE in arg.text[:1]:
                yield Finding("", "it runs another program")

    return look
