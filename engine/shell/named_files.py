"""Which files a command reads, as far as its words say that: for the mark *private*, which a session gets by what it has read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from albert_tools.engine.shell.judge import judge_argv, judge_command
from albert_tools.engine.shell.verdict import Judgement
from albert_tools.engine.shell.word import HOLE

#: Programs that print the names of files at most, and programs that print no content but of the files that they name. All others
#: may read any file.
_NAMES = frozenset(
    """
    : [ basename cal chmod date df dirname du echo expr factor false fd find free groups hostname id ls mkdir nproc numfmt printf
    ps pwd readlink realpath rm rmdir seq sleep test touch tree true tty uname uptime which whoami
    """.split()
)
_NAMED = frozenset(
    """
    b2sum base64 cat cksum cmp column comm cp cut diff egrep expand fgrep file fold grep head hexdump join ln md5sum mv nl od paste
    rev rg sed sha1sum sha256sum sha512sum sort stat strings sum tac tail tee tr tsort uniq wc xxd zcat
    """.split()
)
#: Of these, those that search the folder in which they start if they name none. The first operand is a pattern, or an option is.
_SEARCHING = frozenset("egrep fgrep grep rg".split())
_PATTERN = re.compile(r"-[a-zA-Z]*[ef]|--(regexp|file)\b")
#: Operations of git that print no content.
_SILENT = frozenset(
    "ADD BRANCH CHECKOUT CLONE COMMIT FETCH LOG MERGE PULL PUSH REBASE REMOTE RESET REV-PARSE STATUS SWITCH TAG".split()
)
#: Options of CHECKOUT that name a branch.
_NEW_BRANCH = frozenset(("-b", "-B", "--orphan"))
#: What a file lists is read, too, or is in a message. GNU takes each beginning of the option.
_LISTED = "--files0-from"
#: The most options in one word behind which the name of a file is looked for.
_MAX_OPTIONS = 10
_PATCH = re.compile(r"-(?!-)\S*[cGLpSuUv]|--(patch|unified|word-diff|binary|cc|full-diff|verbose)\b")
#: The options by which some of these print content, or take it into a message, which any operation may print. `raw` prints what a
#: tag names, which can be a file.
_PRINTING = {
    "COMMIT": re.compile(rf"{_PATCH.pattern}|-(?!-)\S*[Ft]|--(file|template|dry-run)\b"),
    "LOG": _PATCH,
    "STATUS": re.compile(r"-(?!-)\S*v|--verbose\b"),
    # They can put the files of one folder into another.
    **dict.fromkeys(("MERGE", "REBASE"), re.compile(r"-(X|s)|--strategy")),
    **dict.fromkeys(("BRANCH", "TAG"), re.compile("--(format|sort)=.*raw", re.DOTALL)),
}


def files_of_command(text: str) -> list[str] | None:
    """The words of a text for bash that may be files or folders that it reads; None if it may read others, which nobody named."""
    # Redirections are no words of a command.
    return None if "<" in text else _files_of(judge_command(text))


def files_of_program(argv: Sequence[str]) -> list[str] | None:
    """The words of a program and its arguments that may be files or folders; None as in `files_of_command`."""
    return _files_of(judge_argv(tuple(argv)))


def files_of_git(operation: str, arguments: Sequence[str]) -> list[str] | None:
    """The files or folders whose content an operation of git may print: none; or None if it may print any.

    A path among the arguments doesn't say enough: in the history, a file can be a folder, and have another name.
    """
    if operation in _SILENT and not (operation in _PRINTING and any(map(_PRINTING[operation].match, arguments))):
        # A revision can be a folder, whose files get other names.
        options = takewhile(lambda word: word != "--", arguments)
        from_revision = sum(word[:1] != "-" for word in arguments) > 1 and _NEW_BRANCH.isdisjoint(options)
        return None if operation in ("CHECKOUT", "RESET") and from_revision else []
    return None


def _files_of(judgement: Judgement) -> list[str] | None:
    all_files: list[str] = []
    for part in judgement.parts:
        name, *words = part.argv or ("",)
        name = name.rpartition("/")[2]
        if part.verdict != "ordinary":
            return None
        files: list[str] | None = None
        if name in _NAMES:
            files = []
        elif not any(HOLE in word for word in words):
            files = _words(name, words) if name in _NAMED else None
            files = files_of_git(words[0].upper(), words[1:]) if name == "git" and words else files
        if files is None or any(_LISTED.startswith(word.partition("=")[0]) for word in words if word[:3] == "--f"):
            return None
        all_files += files
    return all_files


def _words(name: str, words: Sequence[str]) -> list[str]:
    """All words that can name a file, also in an option: ``-fFILE``, ``-rfFILE``, ``--file=FILE``."""
    candidates = [word for whole in words for word in (whole, whole.partition("=")[2]) if word]
    candidates += [word[i:] for word in words if word[:1] == "-" for i in range(2, min(len(word), _MAX_OPTIONS))]
    operands = [word for word in words if not word.startswith("-")]
    if name in _SEARCHING and (len(operands) < 2 or any(map(_PATTERN.match, words))):
        candidates.append(".")
    return candidates
