"""Shells in the words of a command: the text that one gets, and whether one runs its input. `env -S` is one of another kind.

What a shell reads another way in some version is not known: a text in which a forbidden command could hide must not pass."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile

from albert_tools.engine.shell.command_patterns import QUOTES, decoded
from albert_tools.engine.shell.word import AWAY, HOLE, Word

#: Shells. Without a script, they run their input.
_SHELLS = frozenset("ash bash csh dash fish ksh lksh mksh osh posh rbash rksh rzsh sh tcsh yash zsh".split())
#: Those whose options are not read here, but for `-c`.
_OTHERS = frozenset("csh fish osh tcsh".split())
#: What can follow the name of a shell.
_VERSION = re.compile(r"(?:-static|-?[\d.]{1,9})$")
#: The characters of a word that can name a shell with its options.
_MAX_NAME = 64
#: Options of shells that take a value: for each `o` one.
_WITH_VALUE = re.compile(r"[-+]\w*[oO]\w*|--(?:rcfile|init-file)")
#: Files by which a shell reads its input.
_READ = re.compile(r"/+(?:dev|proc)/|(?:.*/)?(?:dev/(?:stdin|fd/\d+)|proc/(?:self|thread-self|\d+)/fd/\d+)$")
#: A redirection to or from a file.
_REDIRECTION = re.compile(r"\d{0,3}[<>]+[&|]?\s*[\w./-]*")
#: What a shell expands in a word.
_EXPANDED = re.compile(r"[*?]+|(?<=\w)\[[^\]\[\s]*\]|\[[^\]\[\s]*\](?=\w)")
#: The ends of commands in a text.
_ENDS = re.compile(r"[\n;|&<>(){}\[\],`]+")


def text_for_shell(argv: Sequence[Word]) -> Word | None:
    """The text that a command gives to a shell; None if there is none."""
    name, rest = posixpath.basename(argv[0].text), argv[1:]
    if name == "eval":
        return Word(" ".join(word.text for word in rest), all(word.known for word in rest))
    if not argv[0].known or not is_shell(name):
        return None
    if _VERSION.sub("", name.lower()) in _OTHERS and (len(rest) != 2 or rest[0].text not in ("-c", "-lc")):
        return Word(HOLE, False) if any(word.text.startswith("-") for word in rest) else None
    return _text_of_option(rest)


def _text_of_option(arguments: Sequence[Word]) -> Word | None:
    """The text that a shell runs because of its option `-c`: the first word that is no option."""
    has_text, values = False, 0
    for word in arguments:
        if values:
            values -= 1
            if not word.fits(r"[a-z]\w* | [\w./-]+\.\w+"):
                return Word(HOLE, False)
        elif word.text[:1] not in ("-", "+"):
            return word if has_text else None
        else:
            has_text = has_text or re.match(r"-\w*c|--c", word.text) is not None
            values = max(1, word.text.lower().count("o")) if _WITH_VALUE.fullmatch(word.text) else 0
    return None


def is_bash(word: str) -> bool:
    """Whether a shell reads a text as bash does. The others read what POSIX describes."""
    return _VERSION.sub("", posixpath.basename(word)) in ("bash", "eval", "rbash")


def split_by_env(argv: Sequence[Word]) -> Sequence[Word] | None:
    """The command into which `env -S` splits its text, with the words behind it; None if there is no `-S`."""
    is_value = False
    for at, word in enumerate(argv[1:], start=1) if posixpath.basename(argv[0].text) == "env" else ():
        if is_value:
            is_value = False
        elif not word.text.startswith("-"):
            return None
        elif match := re.match(r"-[iv0]*S|--s[a-z-]*=?", word.text):
            text, *behind = [word._replace(text=word.text[match.end() :]), *argv[at + 1 :]]
            if not text.text and behind:
                text, *behind = behind
            return (argv[0], *_words_of_env(text), *behind)
        else:
            is_value = re.fullmatch(r"-[iv0]*[uCaPLU]|--(?:unset|chdir|argv0)", word.text) is not None
    return None


def _words_of_env(text: Word) -> Sequence[Word]:
    """The words of a text for `env -S`: quotes and blanks mean the same as in a shell, and all other signs nothing."""
    if text.known and not re.search(r"[\\\\$#]", text.text):
        with suppress(ValueError):
            return [Word(word) for word in shlex.split(text.text)]
    return [Word(HOLE, False)]


@lru_cache(maxsize=64)
def runs_its_input(argv: tuple[str, ...]) -> bool:
    """Whether a command is a shell that runs its input, or has one in its words."""
    text = _EXPANDED.sub(HOLE, _REDIRECTION.sub(" ", " ".join(argv).replace("<(", " /dev/fd/0;")))
    parts = [part for reading in {text, decoded(text)} for part in _ENDS.split(QUOTES.sub("", reading))]
    return any(_has_no_script(re.split("[ \t=!:]+", part)) for part in parts)


def is_shell(word: str) -> bool:
    """Whether a word is the name of a shell, or could be one. Letters of options may stand before it, as in `env -Sbash`."""
    name = re.sub(r"^-\w*?[Sc](?=\w)", "", word.replace(AWAY, HOLE)[-_MAX_NAME:]).rpartition("/")[2].lower()
    begin, hole, end = name.partition(HOLE)
    if hole and begin + end:
        return any(shell.startswith(begin) and shell.endswith(end.rpartition(HOLE)[2]) for shell in _SHELLS)
    return _VERSION.sub("", name) in _SHELLS


def _has_no_script(words: Sequence[str]) -> bool:
    """Whether the last shell in these words has no script."""
    shell, option = "", ""
    for word in takewhile(lambda word: not word.startswith("#"), words):
        if is_shell(word) or word in (".", "source"):
            shell, option = word, ""
        elif not shell or not word or _WITH_VALUE.fullmatch(option):
            option = ""
        elif _READ.match(word) or (shell not in (".", "source") and re.fullmatch(r"-\w*s\w*", word)):
            return True
        elif word[0] in "-+" and not re.fullmatch(r"-\w*c\w*", word):
            option = word
        else:
            shell = ""
    return shell not in ("", ".")
