"""Which commands print no content of files, and copy none. Every other one counts as having read the private files that it sees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from albert_tools.engine.shell.judge import judge_argv, judge_command
from albert_tools.engine.shell.reader import SHELLS
from albert_tools.engine.shell.verdict import Judgement

#: Programs that print the names of files at most, or what another program has printed.
_QUIET = frozenset(
    """
    : [ basename cal cd chmod date df dirname echo expr factor false find free groups hostname id ls mkdir nproc numfmt printf
    ps pwd readlink realpath rm rmdir seq sleep tee test touch tr true tty uname uptime which whoami
    """.split()
)
#: Operations of git that print no content, put none into the repository, which can be pushed, and give no changed file another
#: name, as a merge can. And those that run no hooks, which may print any content. The tool `git` runs no hooks.
_QUIET_GIT = frozenset("BRANCH CHECKOUT CLONE FETCH LOG PUSH RESET REV-PARSE STATUS SWITCH TAG".split())
_WITHOUT_HOOKS = frozenset(("LOG", "REV-PARSE"))
#: Options of CHECKOUT that name a branch.
_NEW_BRANCH = frozenset(("-b", "-B", "--orphan"))
#: The options by which some of these print content all the same. A tag can name a file (`raw`), and have one as its message.
_PRINTING = {
    "LOG": re.compile(r"-(?!-)\S*[cGLpSuUv]|--(patch|unified|word-diff|binary|cc|full-diff|verbose)\b"),
    "STATUS": re.compile(r"-(?!-)\S*v|--verbose\b"),
    **dict.fromkeys(("CHECKOUT", "SWITCH"), re.compile(r"-(?!-)\S*m|--(m|conflict)")),
    **dict.fromkeys(("BRANCH", "TAG"), re.compile(r"-(?!-)\S*F|--file\b|--(format|sort)=.*raw", re.DOTALL)),
}


def is_quiet_command(text: str) -> bool:
    """Whether a text for bash prints no content of files."""
    # Redirections are no words of a command.
    return "<" not in text and _is_quiet(judge_command(text))


def is_quiet_program(argv: Sequence[str]) -> bool:
    """Whether a program with its arguments prints no content of files."""
    judgement = judge_argv(tuple(argv))
    # A shell may read a file: a redirection in its text is no word of a command.
    programs = {part.argv[0].rpartition("/")[2] for part in judgement.parts if part.only_runs and part.argv}
    reads = "<" in judgement.text and not programs.isdisjoint(SHELLS)
    return not reads and _is_quiet(judgement)


def is_quiet_git(operation: str, arguments: Sequence[str]) -> bool:
    """Whether an operation of git prints no content of files, nor gives a file another name.

    A path among the arguments doesn't say enough: in the history, a file can be a folder, and have another name.
    """
    if operation not in _QUIET_GIT or (operation in _PRINTING and any(map(_PRINTING[operation].match, arguments))):
        return False
    # A revision can be a folder, whose files get other names.
    options = takewhile(lambda word: word != "--", arguments)
    from_revision = sum(word[:1] != "-" for word in arguments) > 1 and _NEW_BRANCH.isdisjoint(options)
    return not (operation in ("CHECKOUT", "RESET") and from_revision)


def _is_quiet(judgement: Judgement) -> bool:
    for part in judgement.parts:
        name, *words = part.argv or ("",)
        operation = words[0].upper() if name == "git" and words else ""
        is_quiet = (
            name.rpartition("/")[2] in _QUIET
            or part.only_runs
            or (operation in _WITHOUT_HOOKS and is_quiet_git(operation, words[1:]))
        )
        if part.verdict != "ordinary" or not is_quiet:
            return False
    return True
