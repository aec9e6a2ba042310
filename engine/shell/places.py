"""Where an ordinary command may write: in the workspace or below `/tmp`, and never to hidden files.

Names may have only letters, digits and a few other characters, because some programs read others as patterns. Hidden files
configure other programs (`.bashrc`, `.git/hooks`, `.vscode`), so writing one asks. A few that configure nothing that runs are
exempt. A relative path begins at the folder in which the command starts, so both are judged together. A link in the text is not
followed, because the same text can bring it: only the sandbox knows where it leads.
"""

from __future__ import annotations

import posixpath

from albert_tools.engine.shell.word import Unclear, Word

_INSIDE = r"""
    (?!.*(?:^|/)(?:\.(?!(?:gitignore|dockerignore|editorconfig)$)|(?i:HEAD$|hooks(?:/|$)))) [\w+%,=.][\w./+@%,=\ -]*
    | \.
"""
#: Why an ordinary command may not write a path.
NOT_WRITABLE = "it writes outside the workspace, or to a hidden file or a name with unusual characters"
_TEMPORARY = r"/tmp(?!.*/(?:\.|(?i:HEAD$|hooks(?:/|$))))/[\w./+@%,=:-]+"


class Start(str):
    """The folder in which a command starts: relative to the workspace and without ``..``, or absolute."""

    __slots__ = ()

    def is_inside(self, word: Word) -> bool:
        """Whether this is a plain relative path, and leads to a plain place in the workspace."""
        return self._leads(word, _INSIDE)

    def is_temporary(self, word: Word) -> bool:
        """Whether this is a plain path below `/tmp`."""
        return self._leads(word, _TEMPORARY)

    def demand_writable(self, word: Word, about: str, temporary: bool = True) -> None:
        """Raises `Unclear` unless an ordinary command may write, move or delete this path."""
        if not word.known:
            raise Unclear("the path that it writes is not known before it runs", about)
        if not self.is_inside(word) and not (temporary and self.is_temporary(word)):
            raise Unclear(NOT_WRITABLE, about)

    def _leads(self, word: Word, pattern: str) -> bool:
        path = posixpath.normpath(posixpath.join(self, word.text))
        # `cp -r x/. y` copies all that is in `x` without naming it, hidden files too.
        plain = word.text != "" and ".." not in word.text and not word.text.rstrip("/").endswith("/.")
        return plain and word._replace(text=path).fits(pattern)


def is_log(word: Word) -> bool:
    """Whether this is a log file. Programs run no file of such a name as code."""
    return word.fits(r".+\.log")
