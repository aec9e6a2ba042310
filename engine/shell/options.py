"""Arguments as options and operands, the way most programs take them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from albert_tools.engine.shell.expand import Arg


class Options:
    """`letters` are short options (``-rf`` is r and f), `names` long ones without dashes, `values` what comes with either.

    `valued` are the short options that take a value, `long_valued` the long ones that take the next argument where no ``=`` gives
    it.
    `first` is the position behind the options before the first operand: where a command begins that this one runs.
    """

    def __init__(
        self, args: Sequence[Arg], valued: str = "", long_valued: str = "", until_operand: bool = False
    ) -> None:
        self.letters: set[str] = set()
        self.names: set[str] = set()
        self.values: list[tuple[str, Arg]] = []
        self.operands: list[Arg] = []
        self.unknown = False
        taking = set(long_valued.split())
        index, options = 0, True
        while index < len(args):
            arg = args[index]
            text = arg.text
            index += 1
            if options and text == "--":
                options = False
            elif options and text.startswith("--"):
                name, equals, _ = text[2:].partition("=")
                self.names.add(name)
                self.unknown = self.unknown or not arg.known
                if equals:
                    self.values.append((name, _behind(arg, len(name) + 3)))
                elif _shortened(name, taking) and index < len(args):
                    self.values.append((name, args[index]))
                    index += 1
            elif options and text.startswith("-") and len(text) > 1:
                self.unknown = self.unknown or not arg.known
                index = self._short(arg, args, index, valued)
            else:
                # A hole at the start may be an option as well.
                self.unknown = self.unknown or (options and (arg.splits or text.startswith("\0")))
                self.operands.append(arg)
                if until_operand:
                    index -= 1
                    break
        self.first = index

    def _short(self, arg: Arg, args: Sequence[Arg], index: int, valued: str) -> int:
        for at, letter in enumerate(arg.text[1:], 2):
            self.letters.add(letter)
            if letter in valued:
                if arg.text[at:]:
                    self.values.append((letter, _behind(arg, at)))
                elif index < len(args):
                    self.values.append((letter, args[index]))
                    index += 1
                break
        return index

    def has(self, letters: str, names: str = "") -> bool:
        """Whether any of these is given; a long name may be shortened, as getopt takes it."""
        if self.letters & set(letters):
            return True
        return any(_shortened(name, names.split()) for name in self.names)

    def given(self, *names: str) -> Iterator[Arg]:
        """The values of these options."""
        for name, found in self.values:
            if name in names or (len(name) > 1 and any(n.startswith(name) for n in names)):
                yield found


def _shortened(name: str, full: Iterable[str]) -> bool:
    """Whether a long option is one of these, or a beginning of one, as getopt takes it."""
    return bool(name) and any(one.startswith(name) for one in full)


def _behind(arg: Arg, count: int) -> Arg:
    return Arg(arg.text[count:], arg.glob, arg.splits)
