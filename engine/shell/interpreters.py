"""Shells and other languages: whether what they run stands in the command, in a file, or in what they read.

A text for a shell that reads it as bash does is judged like the command itself. Everything else is code that isn't judged: it asks
where it stands in the command or comes through a pipe. A program in a file is one that somebody has written, and counts as a
program like any other, but for shell scripts, whose commands would have been judged had they stood in the command.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from albert_tools.engine.shell.expand import HOLE, Arg

#: Shells whose scripts are read as bash reads them; of all but bash itself only what means the same to both.
SHELLS = frozenset("sh bash dash ash rbash".split())

#: Options with which another language runs no code of the command's own, and those that have a value.
_LANGUAGES: dict[str, tuple[str, str]] = {
    "python": (r"-[BbEIOPRSdhqsuVvx]+|--version|--help", r"-[WX]"),
    "perl": (r"-v|--version|-[wct]+", r"(?!)"),
    "ruby": (r"-v|--version|-[wc]+", r"(?!)"),
    "node": (r"-v|--version|--test|--check|-c|--no-warnings|--watch|--trace-warnings|--enable-source-maps", r"(?!)"),
    "php": (r"-v|--version|-l|-i|-m", r"(?!)"),
}
_SPELLED = re.compile(r"(?:(python|pypy)[0-9.]*w?|(perl)[0-9.]*|(ruby)[0-9.]*|(node|nodejs)|(php)[0-9.]*)")


class Runs(NamedTuple):
    """`kind` is ``text`` (a script for a shell), ``file`` (a shell's script), ``stdin``, ``code``, ``unknown`` or ``program``."""

    kind: str
    text: Arg | None = None
    posix: bool = False
    #: Whether the script is given arguments.
    given: bool = False


def is_stdin(text: str) -> bool:
    """Whether a file is what is read already, by any of its names."""
    path = posixpath.normpath(text)
    return path == "-" or re.fullmatch(r"//?(dev/stdin|dev/fd/[0-9]+|proc/[^/]+/fd/[0-9]+)", path) is not None


def language_of(name: str) -> str:
    """The language that a program of this name runs, or nothing."""
    found = _SPELLED.fullmatch(name)
    if found is None:
        return ""
    for language, group in zip(_LANGUAGES, found.groups(), strict=True):
        if group:
            return language
    return ""


def shell(name: str, args: Sequence[Arg]) -> Runs:
    """What a call of one of `SHELLS` runs."""
    posix = name not in ("bash", "rbash")
    index, given = 0, False
    while index < len(args):
        arg = args[index]
        text = arg.text
        if not arg.known:
            # It could be an option, and the next one a script.
            return Runs("unknown")
        if text in ("--version", "--help"):
            return Runs("program")
        if text in ("-n",) and len(args) > index + 1:
            return Runs(
                "program" if all(a.known and not a.text.startswith("-") for a in args[index + 1 :]) else "unknown"
            )
        if text in ("--norc", "--noprofile", "--login", "--posix", "--restricted", "--noediting"):
            posix = posix or text == "--posix"
        elif text == "--":
            index += 1
            break
        elif re.fullmatch(r"[-+][eufxvlir]*[oO]", text):
            if index + 1 >= len(args) or args[index + 1].text not in ("pipefail", "errexit", "nounset", "xtrace"):
                return Runs("unknown")
            index += 1
        elif re.fullmatch(r"-[eufxvlir]*c[eufxvlir]*", text):
            given = True
        elif re.fullmatch(r"[-+][eufxvlirs]+", text):
            if "s" in text:
                return Runs("stdin", posix=posix)
        elif text.startswith(("-", "+")) and text != "-":
            return Runs("unknown")
        else:
            break
        index += 1
    rest = args[index:]
    if given:
        return Runs("text", rest[0], posix, len(rest) > 2) if rest else Runs("program")
    if rest and not is_stdin(rest[0].text):
        return Runs("file")
    return Runs("stdin", posix=posix)


def language(name: str, args: Sequence[Arg]) -> tuple[Runs, Sequence[Arg]]:
    """What a call of a language runs; behind ``-m``, the module with its arguments."""
    harmless, valued = _LANGUAGES[language_of(name)]
    asked = False
    index = 0
    while index < len(args):
        arg = args[index]
        if HOLE in arg.text or arg.splits:
            return Runs("unknown"), ()
        if name.startswith(("python", "pypy")) and re.fullmatch(r"-[BbEIOPRSdqsuvx]*m.*", arg.text, re.S):
            module = arg.text.partition("m")[2]
            return Runs("module"), ([Arg(module), *args[index + 1 :]] if module else args[index + 1 :])
        if re.fullmatch(valued, arg.text):
            index += 1
        elif re.fullmatch(harmless, arg.text):
            asked = asked or arg.text in ("-V", "-v", "--version", "-h", "--help", "--test", "-i", "-m")
        elif is_stdin(arg.text):
            return Runs("stdin"), ()
        elif arg.text.startswith("-"):
            return Runs("code"), ()
        else:
            return Runs("program"), ()
        index += 1
    return Runs("program" if asked else "stdin"), ()
