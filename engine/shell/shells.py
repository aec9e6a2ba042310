"""Finds the text that a command gives to a shell, and shells that run their input.

`env -S` splits a text, too, but by rules of its own. Where versions of a shell differ, the text counts as unknown, so that no
forbidden command hides in it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile

from albert_tools.engine.shell.command_patterns import QUOTES, decoded
from albert_tools.engine.shell.programs import name_of
from albert_tools.engine.shell.word import ANY, AWAY, HOLE, Word

#: Shells. Without a script, they run their input.
_SHELLS = frozenset("ash bash csh dash fish ksh lksh mksh osh posh rbash rksh rzsh sh tcsh yash zsh".split())
#: Those of whose options only `-c` is read.
_NOT_POSIX = frozenset("csh fish osh tcsh".split())
#: What can follow the name of a shell.
_VERSION = re.compile(r"(?:-static|-?[\d.]{1,9})$")
#: The characters of a word that can name a shell with its options.
_MAX_NAME = 64
#: Letters that are options of a shell, and bash's options with a name: some versions take them with one dash, too.
_LETTERS = re.compile(r"[-+]\w+")
_NAMED = re.compile(r"--?(?:login|noediting|noprofile|norc|posix|restricted|verbose|rcfile|init-file)")
#: An option by which one of `_NOT_POSIX` gets a text.
_GIVES_TEXT = re.compile(r"-\w*[cC]|--(?:c|init-c)")
#: The options of `env` other than `-S`, and those of them that take the next word (`Word.fits`). Abbreviations count as unknown.
_OPTION_OF_ENV = """
    - | -[iv0]+ | -[iv0]*[aCu].* | --(argv0 | chdir | unset)(=.*)?
    | --(debug | help | ignore-environment | list-signal-handling | null | version)
    | --(block | default | ignore)-signal(=.*)?
"""
_WITH_VALUE_OF_ENV = "-[iv0]*[aCu] | --(argv0 | chdir | unset)"
#: A path of the running program itself, which can be a shell.
_ITSELF = re.compile(r"/proc/[^/]*/exe$")
#: Files by which a shell reads its input.
_READ = re.compile(r"/+(?:dev|proc)/|(?:.*/)?(?:dev/(?:stdin|fd/\d+)|proc/(?:self|thread-self|\d+)/fd/\d+)$")
#: A redirection to or from a file.
_REDIRECTION = re.compile(r"\d{0,3}[<>]+[&|]?\s*[\w./-]*")
#: What a shell expands in a word.
_EXPANDED = re.compile(r"[*?]+|(?<=\w)(?:\[[^\]\[\s]*\]|\{[^{}\s]*\})|(?:\[[^\]\[\s]*\]|\{[^{}\s]*\})(?=\w)")
#: The ends of commands in a text.
_ENDS = re.compile(r"[\n;|&<>(){}\[\],`]+")


def text_for_shell(argv: Sequence[Word]) -> Word | None:
    """The text that a command gives to a shell; None if there is none. A text that is not certain is unknown."""
    name, rest = posixpath.basename(argv[0].text), argv[1:]
    if argv[0] == Word("eval"):
        rest = rest[1:] if rest and rest[0].text == "--" else rest
        return Word(" ".join(word.text for word in rest), all(word.known for word in rest))
    if not is_shell(_EXPANDED.sub(HOLE, name)):
        return None
    is_other = _VERSION.sub("", name.lower()) in _NOT_POSIX
    if not any(_GIVES_TEXT.match(word.text) if is_other else _option(word)[0] for word in rest):
        return None
    if not argv[0].known:
        return ANY
    if is_other:
        return rest[1] if len(rest) == 2 and rest[0].text in ("-c", "-lc") else ANY
    return _text_of_option(rest)


def _text_of_option(arguments: Sequence[Word]) -> Word | None:
    """The text that a shell runs because of its option `-c`: the first word that is no option."""
    has_text, values, ended = False, 0, False
    for word in arguments:
        if ended or (not values and word.text[:1] not in ("-", "+")):
            return word if has_text else None
        if values:
            values -= 1
            if not word.fits(r"[a-z]\w* | [\w./-]+\.\w+"):
                return ANY
        elif word.text in ("-", "--"):
            ended = True
        elif not word.known or not (_LETTERS.fullmatch(word.text) or _NAMED.fullmatch(word.text)):
            return ANY
        else:
            gives_text, values = _option(word)
            has_text = has_text or gives_text
    return None


def _option(word: Word) -> tuple[bool, int]:
    """Whether a word could be an option by which a shell gets a text, and how many of the words behind it are its values."""
    if _NAMED.fullmatch(word.text):
        return False, int(word.text.endswith(("rcfile", "init-file")))
    if not word.known:
        return word.text.startswith(("-", "+")), 0
    return ("c" in word.text, word.text.lower().count("o")) if _LETTERS.fullmatch(word.text) else (False, 0)


def is_bash(word: str) -> bool:
    """Whether a shell reads a text as bash does. The others read what POSIX describes."""
    return _VERSION.sub("", posixpath.basename(word)) in ("bash", "rbash")


def split_by_env(argv: Sequence[Word]) -> Sequence[Word] | None:
    """The command into which `env -S` splits its text, with the words behind it; None if there is no `-S`."""
    if name_of(Word(posixpath.basename(argv[0].text))) != "env":
        return None
    is_value = False
    for at, word in enumerate(argv[1:], start=1):
        if is_value:
            is_value = False
        elif not word.text.startswith("-") or word.text == "--":
            return None
        elif match := re.match(r"-[iv0]*S|--split-string(?:=|$)", word.text):
            text, *behind = [word._replace(text=word.text[match.end() :]), *argv[at + 1 :]]
            if not text.text and behind:
                text, *behind = behind
            return (argv[0], *_words_of_env(text), *behind)
        elif not word.fits(_OPTION_OF_ENV):
            return (argv[0], ANY)
        else:
            is_value = word.fits(_WITH_VALUE_OF_ENV)
    return None


def _words_of_env(text: Word) -> Sequence[Word]:
    """The words of a text for `env -S`: quotes and blanks mean the same as in a shell, and most other signs nothing."""
    if text.known and not re.search(r"[\\$\v\f]|(?:^|\s)#", text.text):
        with suppress(ValueError):
            return [Word(word) for word in shlex.split(text.text)]
    return [ANY]


@lru_cache(maxsize=64)
def runs_its_input(argv: tuple[str, ...]) -> bool:
    """Whether a command is a shell that runs its input, or has one in its words."""
    text = _EXPANDED.sub(HOLE, _REDIRECTION.sub(" ", " ".join(argv).replace("<(", " /dev/fd/0;")))
    parts = [part for reading in {text, decoded(text)} for part in _ENDS.split(QUOTES.sub("", reading))]
    return any(_has_no_script(re.split("[ \t=!:]+", part)) for part in parts)


def is_shell(word: str) -> bool:
    """Whether a word is the name of a shell, or could be one. Letters of options may stand before it, as in `env -Sbash`."""
    name = re.sub(r"^-\w*?[Sc](?=\w)", "", word.replace(AWAY, HOLE)[-_MAX_NAME:]).rpartition("/")[2].lower()
    if _ITSELF.search(word):
        return True
    return could_be(name, _SHELLS) if HOLE in name else _VERSION.sub("", name) in _SHELLS


def could_be(name: str, names: Collection[str]) -> bool:
    """Whether a name with an unknown part could be one of these. A name of which nothing is known is taken for none."""
    begin, end = name.partition(HOLE)[0], name.rpartition(HOLE)[2]
    return name != HOLE and any(each.startswith(begin) and each.endswith(end) for each in names)


def _has_no_script(words: Sequence[str]) -> bool:
    """Whether the last shell in these words has no script."""
    shell, values = "", 0
    for word in takewhile(lambda word: not word.startswith("#"), words):
        if is_shell(word) or word in (".", "source"):
            shell, values = word, 0
        elif not shell or not word:
            values = 0
        elif values:
            values -= 1
        elif _READ.match(word) or (shell not in (".", "source") and re.fullmatch(r"[-+]\w*s\w*", word)):
            return True
        elif word[0] in "-+" and not (option := _option(Word(word)))[0]:
            values = option[1]
        else:
            shell = ""
    return shell not in ("", ".")
