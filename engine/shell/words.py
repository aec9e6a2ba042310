"""The inside of words: quotes, escapes and expansions, as bash reads them.

This is the lower half of the reader. Each method stands at the first character of what it reads and leaves the position behind it.
Where bash's own rules depend on options, versions or context, the text is refused rather than guessed at: a command that is asked
about costs a moment, one that is misread can cost everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from albert_tools.engine.shell.ansi_quotes import ansi_c
from albert_tools.engine.shell.reading_limits import MAX_COMMANDS, MAX_DEPTH, Unreadable
from albert_tools.engine.shell.syntax import Hole, Piece, Script, Text, Word

#: What ends a word.
META = " \t\n|&;()<>"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_SPECIAL = re.compile(r"[0-9@*#?$!-]")
_PLAIN = re.compile(r"[^\\'\"$`<>\s|&;()]+")
#: A word that is nothing but plain text; what stands behind it ends it for certain.
_ALL_PLAIN = re.compile(r"[^\\'\"$`<>\s|&;()]+(?=[ \t\n|&;()]|\Z)")
_ARITHMETIC = re.compile(r"[0-9 \t\n+\-*/%<>=!&|^~?:,#@.]+")


@dataclass(slots=True)
class Notes:
    """What was met anywhere in the text, whichever reader read that part of it."""

    commands: int = 0
    #: What turns a text into code, in words for a person.
    turned: list[str] = field(default_factory=list)
    #: Whether arithmetic looks at variables, which it evaluates as expressions.
    arithmetic: bool = False
    #: Names of variables that are lists.
    lists: set[str] = field(default_factory=set)
    #: The scripts whose output arithmetic evaluates.
    fed: list[Script] = field(default_factory=list)


class Words:
    """Reads words. `posix` is for shells that don't know all that bash knows, and read it as something else."""

    def __init__(self, source: str, notes: Notes, depth: int = 0, posix: bool = False) -> None:
        if depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        self.source = source
        self.at = 0
        self.notes = notes
        self.depth = depth
        self.posix = posix
        #: The scripts of substitutions in the word that is being read.
        self.scripts: list[Script] = []

    def script_until(self, closing: str) -> Script:
        """A script, with the bracket that ends it: the upper half's."""
        raise NotImplementedError

    def nested(self, source: str) -> Words:
        """A reader of a text within this one."""
        raise NotImplementedError

    def peek(self, text: str) -> bool:
        """Whether `text` comes next."""
        return self.source.startswith(text, self.at)

    @property
    def char(self) -> str:
        """The next character; empty at the end."""
        return self.source[self.at : self.at + 1]

    def bashism(self, what: str) -> None:
        """Where another shell than bash reads it, `what` is something else."""
        if self.posix:
            raise Unreadable(f"{what} means one thing to bash and another to other shells")

    def count(self) -> None:
        """One more command."""
        self.notes.commands += 1
        if self.notes.commands > MAX_COMMANDS:
            raise Unreadable("it holds too many commands")

    # Words.

    def word(self, ends: str = META) -> Word:
        """A word, up to what ends it."""
        if ends is META and (plain := _ALL_PLAIN.match(self.source, self.at)):
            start, self.at = self.at, plain.end()
            return Word((Text(plain.group(), False),), (), start, self.at)
        outer, self.scripts = self.scripts, []
        start = self.at
        pieces: list[Piece] = []
        while self.char and self.char not in ends:
            self._piece(pieces)
            if self.char in ("<", ">") and self.source[self.at + 1 : self.at + 2] == "(":
                self._process(pieces)
        if self.at == start and self.char in ("<", ">") and self.source[self.at + 1 : self.at + 2] == "(":
            self._process(pieces)
            if self.char and self.char not in ends:
                raise Unreadable("something is joined to a process substitution")
        found = Word(tuple(pieces), tuple(self.scripts), start, self.at)
        self.scripts = outer
        return found

    def _process(self, pieces: list[Piece]) -> None:
        self.bashism("a process substitution")
        self.at += 2
        self._substituted()
        pieces.append(Hole("", True))

    def _piece(self, pieces: list[Piece]) -> None:
        char = self.char
        if char == "\\":
            self._escape(pieces)
        elif char == "'":
            pieces.append(Text(self._single(), True))
        elif char == '"':
            self._double(pieces)
        elif char == "$":
            self.dollar(pieces, quoted=False)
        elif char == "`":
            self._backtick(pieces, quoted=False, double=False)
        else:
            plain = _PLAIN.match(self.source, self.at)
            text = plain.group() if plain else char
            pieces.append(Text(text, False))
            self.at += len(text)

    def _escape(self, pieces: list[Piece]) -> None:
        after = self.source[self.at + 1 : self.at + 2]
        if not after:
            raise Unreadable("it ends in a backslash")
        # A backslash before the end of a line takes both away, also in the middle of a word.
        if after != "\n":
            pieces.append(Text(after, True))
        self.at += 2

    def _single(self) -> str:
        end = self.source.find("'", self.at + 1)
        if end < 0:
            raise Unreadable("a quote ' is never closed")
        text = self.source[self.at + 1 : end]
        self.at = end + 1
        return text

    def _double(self, pieces: list[Piece]) -> None:
        self.at += 1
        pieces.append(Text("", True))
        self.template(pieces, '"')
        self.at += 1

    def template(self, pieces: list[Piece], closing: str) -> None:
        """Text with expansions in it, up to `closing`: between double quotes, or a here-document with nothing to close it."""
        while True:
            char = self.char
            if not char:
                if closing:
                    raise Unreadable(f"a quote {closing} is never closed")
                return
            if char == closing:
                return
            if char == "\\":
                after = self.source[self.at + 1 : self.at + 2]
                if after == "\n":
                    self.at += 2
                elif after and after in "$`\\" + closing:
                    pieces.append(Text(after, True))
                    self.at += 2
                else:
                    pieces.append(Text("\\", True))
                    self.at += 1
            elif char == "$":
                self.dollar(pieces, quoted=True)
            elif char == "`":
                self._backtick(pieces, quoted=True, double=bool(closing))
            else:
                end = self.at + 1
                while end < len(self.source) and self.source[end] not in '\\$`"':
                    end += 1
                pieces.append(Text(self.source[self.at : end], True))
                self.at = end

    # Expansions.

    def dollar(self, pieces: list[Piece], quoted: bool) -> None:
        """``$`` and what it makes of what follows."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        if self.peek("$(("):
            self.at += 3
            self.arithmetic("))")
            pieces.append(Hole("#", quoted))
        elif self.peek("$("):
            self.at += 2
            self._substituted()
            pieces.append(Hole("", quoted))
        elif self.peek("${"):
            self.at += 2
            pieces.append(self._parameter(quoted))
        elif self.peek("$["):
            raise Unreadable("$[…] is an old form of $((…))")
        elif self.peek("$\\\n"):
            raise Unreadable("a line is broken inside an expansion")
        elif not quoted and self.peek("$'"):
            self.bashism("$'…'")
            text, self.at = ansi_c(self.source, self.at + 2)
            pieces.append(Text(text, True))
        elif not quoted and self.peek('$"'):
            self.bashism('$"…"')
            self.at += 1
            self._double(pieces)
        else:
            self.at += 1
            found = _NAME.match(self.source, self.at) or _SPECIAL.match(self.source, self.at)
            if found is None:
                pieces.append(Text("$", True))
            else:
                self.at = found.end()
                if self.peek("\\\n"):
                    raise Unreadable("a line is broken inside an expansion")
                pieces.append(Hole(found.group(), quoted))
        self.depth -= 1

    def _substituted(self) -> None:
        self.scripts.append(self.script_until(")"))

    def _backtick(self, pieces: list[Piece], quoted: bool, double: bool) -> None:
        """``…`` in the old form: the inside loses a level of backslashes before it is read."""
        self.at += 1
        inside = []
        while True:
            char = self.char
            if not char:
                raise Unreadable("a backquote ` is never closed")
            if char == "`":
                break
            after = self.source[self.at + 1 : self.at + 2]
            if char == "\\" and after and after in ("$`\\" + ('"' if double else "")):
                inside.append(after)
                self.at += 2
            else:
                inside.append(char)
                self.at += 1
        self.at += 1
        self.scripts.append(self.nested("".join(inside)).script_until(""))
        pieces.append(Hole("", quoted))

    def _parameter(self, quoted: bool) -> Hole:
        """``${…}``. What it comes to is unknown; what runs inside it isn't."""
        mark = ""
        if self.char in ("!", "#") and self.source[self.at + 1 : self.at + 2] not in ("}", ""):
            mark = self.char
            self.at += 1
        found = _PARAMETER.match(self.source, self.at)
        if found is None:
            raise Unreadable("${ is followed by no parameter")
        self.at = found.end()
        listed = False
        if self.char == "[":
            listed = self.peek("[@]") or self.peek("[*]")
            self.at += 3 if listed else 1
            if not listed:
                self.arithmetic("]")
        if mark == "!" and not listed:
            self.notes.turned.append("${!…} takes the name of a variable from another")
        if self.char == "}":
            self.at += 1
            if mark:
                return Hole("#" if mark == "#" else "", quoted)
            return Hole(found.group() if not listed else "@", quoted)
        if self.char == "@":
            self.notes.turned.append("${…@…} can run what a variable holds")
        elif self.char == ":" and self.source[self.at + 1 : self.at + 2] not in ("-", "=", "?", "+"):
            # An offset is arithmetic, which runs what variables hold.
            self.notes.arithmetic = True
        elif self.char not in ":-=?+#%/^,":
            raise Unreadable("${…} holds something unknown")
        rest: list[Piece] = []
        while self.char != "}":
            if not self.char:
                raise Unreadable("${ is never closed")
            # Whether a single quote quotes here depends on the operator and on the quotes around.
            if quoted and self.char in ("'", '"', "\\"):
                raise Unreadable("there are quotes inside a quoted ${…}")
            if self.char in ("<", ">") and self.source[self.at + 1 : self.at + 2] == "(":
                raise Unreadable("a process substitution is inside ${…}")
            if self.char in "$`\\'\"":
                self._inside(rest, quoted)
            else:
                self.at += 1
        self.at += 1
        return Hole("", quoted)

    def _inside(self, pieces: list[Piece], quoted: bool) -> None:
        if self.char == "$":
            self.dollar(pieces, quoted)
        elif self.char == "`":
            self._backtick(pieces, quoted, double=quoted)
        else:
            self._piece(pieces)

    def arithmetic(self, closing: str) -> None:
        """An expression, up to `closing`: ``))``, ``]`` or, in a loop's head, ``))`` with semicolons before it."""
        depth = 0
        while True:
            char = self.char
            if not char:
                raise Unreadable("arithmetic is never closed")
            if char == ")" and depth == 0 and closing == "))":
                if not self.peek("))"):
                    raise Unreadable("(( could be arithmetic or two groups")
                self.at += 2
                return
            if char == "]" and depth == 0 and closing == "]":
                self.at += 1
                return
            if char in "([":
                depth += 1
                self.at += 1
            elif char in ")]":
                depth -= 1
                self.at += 1
                if depth < 0:
                    raise Unreadable("brackets don't fit each other in arithmetic")
            elif char == "$":
                pieces: list[Piece] = []
                had = len(self.scripts)
                self.dollar(pieces, quoted=True)
                if not (pieces and pieces[-1] == Hole("#", True)):
                    self.notes.fed += self.scripts[had:]
                if any(isinstance(p, Hole) and p.name not in ("#", "?", "$", "!") for p in pieces):
                    self.notes.arithmetic = True
            elif char == "`":
                self._backtick([], quoted=True, double=True)
                self.notes.fed += self.scripts[-1:]
                self.notes.arithmetic = True
            elif name := _NAME.match(self.source, self.at):
                self.at = name.end()
                self.notes.arithmetic = True
            elif plain := _ARITHMETIC.match(self.source, self.at):
                self.at = plain.end()
            elif char == ";" and closing == "))":
                self.at += 1
            else:
                raise Unreadable("arithmetic holds something unknown")
