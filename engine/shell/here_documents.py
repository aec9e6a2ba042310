"""Here-documents, cut out of a text so that the rest can be read line by line.

tree-sitter misreads some of them without reporting an error (an end marker followed by a blank, for example). So a line scan of our
own cuts them first, and leaves a redirection from a made-up file in their place. The reader counts these redirections in the tree:
each here-document that was cut must be found again.
"""

from __future__ import annotations

import re

from albert_tools.engine.shell.word import Unreadable

#: Here-documents in one text.
MAX_HERE_DOCUMENTS = 16

#: What a cut here-document leaves behind: a redirection from this name.
MARKER = "/HERE-DOCUMENT"

_START = re.compile(r"(?<!<)<<(-?) ?(?:'(\w+)'|\"(\w+)\"|(\w++))(?=([\w ./|>&;*-]*+)\n)")
_PLAIN_VARIABLE = re.compile(r"\$\w+|\$\{\w+\}")
_SUBSTITUTION = re.compile(r"[$`\\]")


def without_here_documents(source: str) -> tuple[str, int]:
    """The text without its here-documents, and how many there were.

    Raises:
        Unreadable: the end of one is not certain, or its body holds substitutions.
    """
    count = at = 0
    while start := _START.search(source, at):
        dash, single_quoted, double_quoted, bare, rest = start.groups()
        marker = single_quoted or double_quoted or bare
        begin = start.end() + len(rest) + 1
        lines = source[begin:].split("\n")
        ends = (n for n, line in enumerate(lines) if (line.lstrip("\t") if dash else line) == marker)
        length = next(ends, None)
        if length is None or "<<" in rest or count == MAX_HERE_DOCUMENTS:
            raise Unreadable("the end of its here-document is not certain")
        body = "\n".join(lines[:length])
        # Within a substitution, bash also ends it at a line that only begins with the marker, or at a backquote.
        before = source[: start.start()]
        begins = any(line.lstrip("\t").startswith(marker) for line in lines[:length])
        if ("`" in before and "`" in body) or (begins and not {"(", "`"}.isdisjoint(before)):
            raise Unreadable("the end of its here-document is not certain")
        if bare and _SUBSTITUTION.search(_PLAIN_VARIABLE.sub("", body)):
            raise Unreadable("its here-document holds substitutions", body)
        source = f"{source[: start.start()]}<{MARKER}{rest}\n" + "\n".join(lines[length + 1 :])
        at = start.start() + len(MARKER) + 1
        count += 1
    return source, count
