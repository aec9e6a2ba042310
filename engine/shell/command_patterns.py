"""The owner's patterns of commands: words as a shell would read them, with ``*``.

``git status`` is that and nothing more. ``*`` by itself stands for any further words, also none (``ls *``, ``git * --stat``); in a
word it stands for any characters (``tests/*``). Paths are relative to the top folder of the workspace, wherever a command starts.

A person who approves a command is offered the pattern that matches this command alone (`exact_pattern`).
"""

from __future__ import annotations

import posixpath
import re
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from albert_tools.engine.model.wildcards import Starred
from albert_tools.engine.shell.word import AWAY, HOLE

#: Characters of the longest pattern that a person is offered. A longer one can't be read at a glance.
_MAX_OFFERED = 120
#: What a program that reads a word as a text could take for quotes, and for the end of a word.
QUOTES = re.compile(r"['\"\\]")
#: A text with escapes, as bash reads it.
_ESCAPED = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|0?[0-7]{1,3}|[abfnrtv_'\"\\])")
#: ``env -S`` reads ``\_`` as a blank.
_LETTERS = {"_": " ", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CONTINUED, _ONE_LETTER = re.compile(r"\\\n\s*"), re.compile(r"\$[A-Za-z]")
#: A redirection, which can stand between the words of a command; and quotes within others, which make one word.
_REDIRECTION = re.compile(r"(?<!<)(?:\d{0,3}|&)(?:>>?|<(?![<(]))[&|]?\s*['\"]?[\w./~$*?-]+['\"]?")
_QUOTED = re.compile(r"'[^'\"\n]*'|\"[^'\"\n]*\"")
_BETWEEN = re.compile(r"[\s;|&()<>{}\[\],#%]+")
#: A subcommand of git that is a program.
_SUBCOMMAND = re.compile(r"(?<![\w-])git-(?=\w)")
#: Words of such a text that can be anything: variables, and in a command of git those by which it runs another one.
_UNKNOWN = re.compile(r"[$`]")
_UNKNOWN_IN_GIT = re.compile(
    r"[$`]|\b(?:alias|include|includeif)\.|\bhelp\.autocorrect\b|^for-each-repo$|^--ren(?:am?|ame(?:-s\w*)?)?$|^rename-section$",
    re.IGNORECASE,
)
_GLOB = re.compile(r"[*?]+")
#: A word that names a file: by its folder, or by the end of its name.
_FILE = re.compile(r"(?!-|\w+:).*(?:/.*|\.[A-Za-z]\w*)", re.DOTALL)
#: What stands before a path in one word, or nothing; and the path.
_IN_WORD = re.compile(
    r"""
    (   -{0,2} \w [\w-]* = @?               # an option or a name with its value
    |   -\w @? (?=.)                        # the letter of an option with its value
    |   @                                   # `curl -d @a`
    |   [\w^~@{}-]* : (?=\.\.?/)            # a revision of git
    |
    ) (.*)
    """,
    re.DOTALL | re.VERBOSE,
)
#: The folder above, in a path or in a list of paths.
_PARENT = re.compile(r"(?<![^/:,=])\.\.(?![^/:,=])")
#: Links of the kernel, which can lead to any folder.
_MAGIC = re.compile(r"(?:^|/)(?:proc/(?:self|thread-self|[\d\0]+)|dev/fd)/")
#: An interpreter with its version: `python3.12` is `python`.
_VERSIONED = re.compile(r"\A(python|pip)[\d.]+\Z")
_OPTION = re.compile(r"[-+]|[A-Za-z_]\w*=")
#: An option by which a program reads its words in another folder.
_ENTERS = re.compile(r"(?:-C|--(?:chdir|directory|cwd))=?")
#: The options of one command whose folders are followed. Each doubles the folders.
_MAX_ENTERED = 2
#: Programs whose ``-C`` is a number of lines.
_SHOWING_LINES = frozenset("diff egrep fgrep grep rg zgrep".split())
#: The letters of a word that are tried as options, as in `-qc'git push'`. More would take long.
_MAX_LETTERS = 16
#: The last names of a path whose ends are compared. More would take long.
_MAX_NAMES = 32
#: The most characters of a path whose texts are kept.
_MAX_KEPT = 256


def is_listed(patterns: Sequence[str], argv: Sequence[str], folders: Sequence[str] = ("",)) -> bool:
    """Whether `argv` certainly matches one of the patterns in each of the folders. A NUL in a word is an unknown part."""
    return all(any(matches(pattern, placed(argv, folder)) for pattern in patterns) for folder in folders)


def matches(pattern: str, argv: Sequence[str]) -> bool:
    """Whether `argv` certainly matches in the top folder."""
    return _fits(_words(pattern), argv, maybe=False)


def placed(argv: Sequence[str], folder: str) -> Sequence[str]:
    """The words of a command that starts in a folder of the workspace, with its files as they are named from the workspace."""
    if not argv or folder in ("", "."):
        return argv
    program, *others = argv
    # A program without a slash is found by PATH, whatever the folder.
    placed_program = _from_workspace(program, folder) if "/" in program else program
    return [placed_program, *(_placed(word, folder) for word in others)]


def _placed(word: str, folder: str) -> str:
    before, path = _in_word(word)
    return before + _from_workspace(path, folder) if _FILE.fullmatch(path) else word


def _in_word(word: str) -> tuple[str, str]:
    """The path in a word, and what stands before it."""
    match = _IN_WORD.fullmatch(word)
    assert match is not None, "both parts may be empty"
    return match[1], match[2]


def _from_workspace(word: str, folder: str) -> str:
    # Where `..` leads is not certain: the name before it can be a link.
    if HOLE in folder or ".." in word.split("/"):
        return AWAY
    path = posixpath.normpath(posixpath.join(folder, word))
    return f"./{path}" if word.startswith("./") and not path.startswith("/") else path


def may_match(pattern: str, argv: Sequence[str], folders: Sequence[str] = ("",)) -> bool:
    """Whether `argv` could match. An unknown word can be any text, a program matches by its name in any folder, and so does a file
    whose folder is not certain. `git-push` is `git push`."""
    name = argv[0].replace(AWAY, HOLE).rpartition("/")[2].lower()
    argv = (*_program_words(name), *argv[1:]) if name.startswith("git-") else argv
    return _fits(_words(pattern, by_name=True), argv, maybe=True, folders=_entered(tuple(folders), tuple(argv)))


def may_start(pattern: str, argv: Sequence[str], folders: Sequence[str] = ("",)) -> bool:
    """Whether a program that nobody knows could run a command that matches, in any folder: some of its words, or of the words in
    them."""
    words, entered = _words(pattern, by_name=True), _entered(tuple(folders), tuple(argv))
    # The program itself is found from the folders of the text; what it starts can be in any folder. A variable has no program.
    begin = 0 if argv and "=" in argv[0] else 1
    others = len(_inner_words("".join(argv[:begin])))
    for reading in _texts("\n".join(argv)):
        inner = _given(reading)
        if _lacks(words, (*inner, reading), entered):
            continue
        if _fits(words, inner, maybe=True, anywhere=True, folders=entered) or any(
            _fits(words, each, maybe=True, anywhere=True, folders=(HOLE,), programs=entered)
            for each in (argv[begin:], inner[others:])
        ):
            return True
    return False


@lru_cache(maxsize=64)
def _texts(text: str) -> Collection[str]:
    """What programs could find in a text: with its escapes decoded (`printf` and others do that anywhere), without redirections,
    and with each part in quotes as one word."""
    once = decoded(text)
    found = {text, once, decoded(once)}
    found |= {_REDIRECTION.sub(" ", each) for each in found}
    return frozenset(found | {_QUOTED.sub(lambda match: re.sub(r"\s", "_", match[0]), each) for each in found})


@lru_cache(maxsize=64)
def _given(text: str) -> Sequence[str]:
    """The words that a program could find in a text and give to another one."""
    unknown = _UNKNOWN_IN_GIT if "git" in text.lower() else _UNKNOWN
    return tuple(HOLE if unknown.search(word) else _GLOB.sub(HOLE, word) for word in _inner_words(text))


def _lacks(words: Sequence[Starred | None], texts: Sequence[str], folders: Sequence[str]) -> bool:
    """Whether a word of a pattern certainly stands neither in texts nor in the known folders. A path can have another spelling
    there. It saves time."""
    lowered = " ".join((*texts, *(folder for folder in folders if HOLE not in folder))).lower()
    return HOLE not in lowered and any(
        part.lower() not in lowered
        for word in words
        if word is not None and not any(_form(word))
        for part in (word.first, *word.middle, word.last or "")
    )


@lru_cache(maxsize=64)
def _entered(folders: Sequence[str], argv: Sequence[str]) -> Sequence[str]:
    """The folders in which a command can read its words; `HOLE` stands for others, and `AWAY` for any."""
    if not argv or posixpath.basename(argv[0]) in _SHOWING_LINES:
        return folders
    words = pairwise((*argv, ""))
    inner = [word[match.end() :] or following for word, following in words if (match := _ENTERS.match(word))]
    if not inner:
        return folders
    entered = [*folders]
    for each in inner[:_MAX_ENTERED]:
        entered += [posixpath.join(folder, each) for folder in entered if HOLE not in folder + each]
    return [*entered, HOLE if len(inner) <= _MAX_ENTERED else AWAY]


@lru_cache(maxsize=4096)
def stands_in(pattern: str, text: str, folders: Sequence[str] = ("",)) -> bool:
    """Whether a text has the words of a command that matches, whatever reads the text. Its unknown parts match nothing."""
    text = _ESCAPED.sub(lambda match: decoded(match[1]), text)
    # Make joins lines, and takes `$X` for a variable.
    readings = {*_texts(text), _ONE_LETTER.sub("", decoded(_CONTINUED.sub("", text)))}
    words = _words(pattern, by_name=True)
    return any(
        not _lacks(words, inner, folders) and _fits(words, inner, maybe=True, anywhere=True, folders=folders)
        for inner in map(_inner_words, readings)
    )


def decoded(text: str) -> str:
    """The text with the escapes decoded that programs know."""
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    kind, digits = match[0][1], match[0][2:]
    if kind in "xuU":
        return chr(min(int(digits, 16), sys.maxunicode))
    return chr(int(kind + digits, 8) % 256) if kind.isdigit() else _LETTERS.get(kind, kind)


@lru_cache(maxsize=64)
def _inner_words(text: str) -> Sequence[str]:
    """The words that a program could find in a text. A subcommand of git is also a program, such as `git-push`."""
    return tuple(word for word in _BETWEEN.split(_SUBCOMMAND.sub("git ", QUOTES.sub("", text))) if word)


def names_a_program(pattern: str) -> bool:
    """Whether the first word of a pattern is a plain name, so that its author knew the program."""
    return "*" not in pattern.split(maxsplit=1)[0]


def exact_pattern(argv: Sequence[str]) -> str | None:
    """The pattern that matches `argv` and nothing else.

    None for an unknown word, and for text that a person could misread: other than ASCII, or very long. None for a word with a
    star, because in a pattern it would match other words too.
    """
    pattern = shlex.join(argv)
    if not argv or "*" in pattern or len(pattern) > _MAX_OFFERED:
        return None
    return pattern if pattern.isascii() and pattern.isprintable() else None


@lru_cache(maxsize=1024)
def _words(pattern: str, by_name: bool = False) -> tuple[Starred | None, ...]:
    """Each word; None for any number of words. If `by_name`, the folder of the program is left out, and paths have one spelling."""
    try:
        words = shlex.split(pattern)
    except ValueError:
        words = pattern.split()
    if by_name and words:
        name = words[0].rpartition("/")[2].lower()
        # A program can take what follows `--` without it, too. `git checkout -- *` means files alone.
        words = [word for word, following in pairwise((*words, "*")) if word != "--" or following == "*"]
        words = [_normal(word) if _is_path(word) else word for word in words]
        # The name in `./scripts/*` is any name, so the folder stays.
        words[:1] = _program_words(name) if name.strip("*") else words[:1]
    starred_words: list[Starred | None] = []
    for word in words:
        if word != "*":
            starred_words.append(Starred.of(word))
        elif not starred_words or starred_words[-1] is not None:
            starred_words.append(None)
    return tuple(starred_words)


def _program_words(name: str) -> Sequence[str]:
    """The words for the name of a program: `git-push` is `git push`, and `python3` is `python`."""
    if name.startswith("git-"):
        return "git", name.removeprefix("git-")
    return (name.removesuffix("3") if name in ("python3", "pip3") else name,)


def _normal(word: str) -> str:
    path = posixpath.normpath(word)
    # What is in the top folder remains a path.
    return path if "/" in path or not path.strip("*") else f"./{path}"


def _is_path(word: str) -> bool:
    return "/" in word and "://" not in word


def _fits(
    words: Sequence[Starred | None],
    argv: Sequence[str],
    maybe: bool,
    anywhere: bool = False,
    folders: Sequence[str] = ("",),
    programs: Sequence[str] = (),
) -> bool:
    """Whether `argv` matches: certainly or (`maybe`) possibly, as a whole or (`anywhere`) from some word to another. `programs` are
    the folders of the program, if these are not `folders`."""
    # Every position in the pattern that the words so far can have led to.
    at = start = _skipped({0}, words)
    programs = programs or folders
    is_option = False
    for arg in argv:
        at = at | start if anywhere else at
        # An option (with its value) or a variable may stand before each word after the first, and behind a program alone.
        was_option, is_option = is_option, _OPTION.match(arg) is not None
        skips = maybe and (is_option or was_option)
        after = {position for position in at if 0 < position < max(2, len(words))} if skips else set[int]()
        for position in at:
            if position == len(words):
                continue
            word = words[position]
            if word is None:
                after.add(position)
            elif (word.fits(arg) and (maybe or not _leaves(word, arg))) or (
                maybe
                and any(
                    _could_fit(word, text)
                    for text in _readings(word, arg, position, anywhere, folders if position else programs)
                )
            ):
                after.add(position + 1)
        if maybe and arg == HOLE:
            # It may be no word or several.
            after |= {further for position in at for further in range(position, len(words) + 1)}
        at = _skipped(after, words)
        if anywhere and len(words) in at:
            return True
        if not at and not anywhere:
            return False
    return len(words) in at


def _readings(pattern: Starred, word: str, position: int, anywhere: bool, folders: Sequence[str]) -> Iterator[str]:
    """The texts that a word can stand for: the first word of a command for a program in any folder, a further one for its path.

    If the command can be anywhere, its first word can also follow a ``=``, ``!`` or ``@``, or the letters of options; a further
    word can follow a ``=``, or end before a ``/``.
    """
    before, path = _in_word(word) if position else ("", word)
    is_file, has_folder = _form(pattern)
    # A script can be named without its folder behind another program.
    is_script = is_file and anywhere and _FILE.fullmatch(path)
    if (position and (is_file or AWAY not in path)) or is_script or "/" in path.replace(AWAY, HOLE):
        if path.startswith("/"):
            # An absolute path is the same in each folder.
            folders = ("",)
        elif not is_file:
            # A target is no path: `./deploy` is `deploy` in each folder.
            folders = (*folders, "")
        texts_of = _paths if len(path) <= _MAX_KEPT else _paths.__wrapped__
        for folder in folders:
            # In a folder that isn't certain, only a file is another one. In any folder (`AWAY`), each word is.
            if is_file or folder != HOLE:
                yield from (before + each for each in texts_of(path, folder, has_folder))
    elif position:
        # Its beginning is certain.
        yield from (before + posixpath.join(folder, path) for folder in folders if folder != HOLE)
    if position:
        yield word
        if anywhere:
            yield word.rpartition("=")[2]
            yield word.partition("/")[0]
        return
    # What is not known can have slashes.
    path = HOLE + word.rpartition(HOLE)[2] if HOLE in word else word
    name = re.split(r"[/=!:]" if anywhere else "/", path)[-1].lower()
    yield name
    yield _VERSIONED.sub(r"\1", name)
    if anywhere and name.startswith(("-", "@", "+")):
        yield name.lstrip("-@+")
        # Each of the first letters can be the option that takes the rest of the word.
        yield from (name[n:] for n in range(2, min(len(name), _MAX_LETTERS)))


@lru_cache(maxsize=1024)
def _form(pattern: Starred) -> tuple[bool, bool]:
    """Whether the word of a pattern names a file, and whether it has a folder."""
    word = "".join((pattern.first, *pattern.middle, pattern.last or ""))
    return _is_path(word) or _FILE.fullmatch(_in_word(word)[1]) is not None, "/" in word


@lru_cache(maxsize=1024)
def _paths(path: str, folder: str, has_folder: bool) -> Sequence[str]:
    """The texts with which a pattern can name a path. `has_folder`: the word of the pattern has a folder."""
    joined = posixpath.normpath(posixpath.join(folder, path))
    is_inside = not joined.startswith(("/", "../"))
    is_certain = HOLE not in folder and AWAY not in path and (is_inside or not _MAGIC.search(joined))
    if is_certain and is_inside:
        return joined, f"./{joined}"
    # It may be in the workspace, whose root is not known here. So each end of it may be its path there.
    names = joined.split("/")[-_MAX_NAMES:]
    ends = ["/".join(names[at:]) for at in range(len(names)) if is_certain or HOLE not in names[at]]
    ends += [f"{before}{end}" for end in ends for before in (["./"] if joined.startswith("/") else ["./", "/"])]
    if is_certain:
        return tuple(ends)
    last = names[-1] if names[-1].strip(".") else HOLE
    return (*ends, f"{HOLE}/{last}" if has_folder or folder == AWAY else last)


def _leaves(word: Starred, arg: str) -> bool:
    """Whether a star would stand for ``..``, so that a path is not below the folder that the pattern names."""
    return len(_PARENT.findall(arg)) > len(_PARENT.findall(word.first))


def _could_fit(word: Starred, text: str) -> bool:
    """Whether a text with unknown parts could be one that the word of a pattern fits."""
    if HOLE not in text:
        return word.fits(text)
    begin, end = text.partition(HOLE)[0], text.rpartition(HOLE)[2]
    if word.last is None:
        return word.first.startswith(begin) and word.first.endswith(end) and len(begin + end) <= len(word.first)
    return begin.startswith(word.first[: len(begin)]) and end.endswith(word.last[-len(end) :] if end else "")


def _skipped(at: set[int], words: Sequence[Starred | None]) -> set[int]:
    return at | {position + 1 for position in at if position < len(words) and words[position] is None}
