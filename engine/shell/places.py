"""Where an ordinary command may write: in the workspace or below `/tmp`, and never to hidden files.

Hidden files configure other programs (`.bashrc`, `.git/hooks`, `.vscode`), so writing one asks. A few that configure nothing that
runs are exempt.
"""

from __future__ import annotations

from albert_tools.engine.shell.word import Unclear, Word

_INSIDE = r"""
    (?:\./)? (?!.*(?:^|/)(?:\.|(?i:HEAD$|hooks(?:/|$)))) [\w+%,=][\w./+@%,=\ -]*
    | (?:\./)? \.(?:gitignore|dockerignore|editorconfig)
    | \.
"""
_TEMPORARY = r"/tmp/(?!.*(?:^|/)(?:\.|(?i:HEAD$|hooks(?:/|$))))[\w./+@%,=:-]+"


def is_inside(word: Word) -> bool:
    """Whether this is a plain relative path below the current folder."""
    return ".." not in word.text and word.fits(_INSIDE)


def is_temporary(word: Word) -> bool:
    """Whether this is a plain path below `/tmp`."""
    return ".." not in word.text and word.fits(_TEMPORARY)


def is_log(word: Word) -> bool:
    """Whether this is a log file. No program runs such a file as code."""
    return word.fits(r".+\.log")


def demand_writable(word: Word, about: str, temporary: bool = True) -> None:
    """Raises `Unclear` unless an ordinary command may write, move or delete this path."""
    if not word.known:
        raise Unclear("the path that it writes is not known before it runs", about)
    if not is_inside(word) and not (temporary and is_temporary(word)):
        raise Unclear("it writes outside the workspace, or to a hidden file", about)
