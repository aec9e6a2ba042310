"""A command's text, read as bash reads it: lists, pipelines, groups, loops, functions, redirections, here-documents.

A recursive descent without lookahead beyond a word. It is stricter than bash: where bash's reading depends on options that a
command can set (`extglob`), on versions (`${ …; }`), or where the grammar is known to be read in two ways (`((`), it refuses. A
second reading by another hand (`second`) must find commands at the same places.
"""

from __future__ import annotations

import re

from albert_tools.engine.shell.reading_limits import MAX_DEPTH, MAX_LENGTH, Unreadable
from albert_tools.engine.shell.syntax import (
    Assignment,
    Command,
    Compound,
    Piece,
    Redirect,
    Script,
    Simple,
    Text,
    Word,
)
from albert_tools.engine.shell.words import META, Notes, Words

_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|while|until|for|select|do|done|case|esac|in|function|time|coproc|\[\[|\]\]|[{}!])"
    r"(?=[ \t\n|&;()<>]|\Z|\\\n)"
)
_STRAY = frozenset("then elif else fi do done esac } coproc".split())
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_REDIRECT = re.compile(r"&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<|>")
_DESCRIPTOR = re.compile(r"(?:[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})(?=[<>])")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[A-Za-z0-9_$]*\])?\+?=")
_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_PLAIN_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[[A-Za-z0-9_@*$\"]*\]")
_UNTYPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

#: Builtins whose arguments are read as assignments, brackets included.
DECLARE = frozenset("declare typeset local export readonly".split())


def read(
    source: str, posix: bool = False, depth: int = 0, notes: Notes | None = None
) -> tuple[Script, Notes, list[int]]:
    """The script that a text is, what was met in it, and where in the text its simple commands begin, by their first words.

    Raises:
        Unreadable: it isn't certain how it is read.
    """
    if len(source) > MAX_LENGTH:
        raise Unreadable(f"it is longer than {MAX_LENGTH:,} characters")
    if _UNTYPED.search(source):
        raise Unreadable("it holds control characters, or what is no character")
    reader = Reader(source, notes or Notes(), depth, posix)
    script = reader.script_until("")
    return script, reader.notes, reader.begins


class Reader(Words):
    """One text."""

    def __init__(self, source: str, notes: Notes, depth: int = 0, posix: bool = False) -> None:
        super().__init__(source, notes, depth, posix)
        self.begins: list[int] = []
        #: Here-documents whose bodies come after the end of this line.
        self._pending: list[Redirect] = []
        #: Whether some of an outer script do.
        self._waits = False
        #: Where a `time` stands before the command that comes.
        self._timed: int | None = None

    def nested(self, source: str) -> Reader:
        """A reader of a text within this one."""
        return Reader(source, self.notes, self.depth + 1, self.posix)

    # Lists.

    def script_until(self, closing: str) -> Script:
        """A script and the bracket that ends it: ``)``, or nothing where the text's end does."""
        outer, self._pending = self._pending, []
        waits, self._waits = self._waits, self._waits or bool(outer)
        found = self._list(("",) if not closing else (closing,))
        if self._pending:
            raise Unreadable("a here-document has no end")
        self._pending, self._waits = outer, waits
        if closing:
            self.at += len(closing)
        return found

    def _list(self, ends: tuple[str, ...]) -> Script:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        found: list[tuple[Command, ...]] = []
        self._lines()
        while not self._ends(ends):
            found.append(self._pipeline())
            self._blank()
            joined = self.peek("&&") or self.peek("||")
            if joined:
                self.at += 2
                self._lines()
                if self._ends(ends):
                    raise Unreadable("a command is missing after && or ||")
            elif self.char == "\n":
                self._lines()
            elif self.char == ";" and not (self.peek(";;") or self.peek(";&")):
                self.at += 1
                self._lines()
            elif self.char == "&":
                self.at += 1
                self._lines()
            elif not self._ends(ends):
                raise Unreadable(
                    f"something stands where a command should end: {self.source[self.at : self.at + 20]!r}"
                )
        self.depth -= 1
        return Script(tuple(found))

    def _ends(self, ends: tuple[str, ...]) -> bool:
        self._blank()
        if not self.char:
            if "" in ends:
                return True
            raise Unreadable("it ends in the middle of a command")
        if self.char == ")":
            if ")" in ends:
                return True
            raise Unreadable("a ) closes nothing")
        if ";;" in ends and (self.peek(";;") or self.peek(";&")):
            return True
        word = self._reserved()
        return bool(word) and word in ends

    def _blank(self) -> None:
        """What stands between words on a line, a comment included."""
        blank = _BLANK.match(self.source, self.at)
        self.at = blank.end() if blank else self.at
        if self.char == "#" and (self.at == 0 or self.source[self.at - 1] in META):
            end = self.source.find("\n", self.at)
            self.at = len(self.source) if end < 0 else end
        elif self.char == "#":
            raise Unreadable("a # could begin a comment or not")

    def _lines(self) -> None:
        """Ends of lines, with the bodies of here-documents that follow them."""
        self._blank()
        while self.char == "\n":
            if self._waits:
                raise Unreadable("a here-document waits while a substitution goes over lines")
            self.at += 1
            pending, self._pending = self._pending, []
            for redirect in pending:
                self._body(redirect)
            self._blank()

    def _body(self, redirect: Redirect) -> None:
        delimiter = "".join(p.text for p in redirect.target.pieces if isinstance(p, Text))
        quoted = any(p.quoted for p in redirect.target.pieces)
        start, lines = self.at, []
        while True:
            if self.at >= len(self.source):
                raise Unreadable("a here-document has no end")
            line = self._line(quoted)
            if redirect.operator == "<<-":
                line = line.lstrip("\t")
            if line == delimiter:
                break
            lines.append(f"{line}\n")
        body = "".join(lines)
        if quoted:
            redirect.body = Word((Text(body, True),), (), start, self.at)
            return
        inner = self.nested(body)
        pieces: list[Piece] = []
        inner.template(pieces, "")
        redirect.body = Word(tuple(pieces), tuple(inner.scripts), start, self.at)

    def _line(self, quoted: bool) -> str:
        """The next line, joined with those that a backslash at its end joins to it."""
        found: list[str] = []
        while True:
            end = self.source.find("\n", self.at)
            line = self.source[self.at : end if end >= 0 else len(self.source)]
            self.at = end + 1 if end >= 0 else len(self.source)
            slashes = len(line) - len(line.rstrip("\\"))
            if quoted or slashes % 2 == 0:
                return "".join([*found, line])
            if end < 0:
                raise Unreadable("a here-document has no end")
            found.append(line[:-1])

    # Pipelines and commands.

    def _pipeline(self) -> tuple[Command, ...]:
        while (word := self._reserved()) in ("!", "time"):
            if word == "time" and self._timed is None:
                self._timed = self.at
            self.at += len(word)
            self._blank()
            if word == "time":
                for option in ("-p", "--"):
                    if re.compile(rf"{option}(?=[ \t\n|&;()<>]|\Z)").match(self.source, self.at):
                        self.at += 2
                        self._blank()
                if self.char == "-":
                    # A program of that name, where the shell is told to be like others.
                    raise Unreadable("`time` has options")
            if not self.char or self.char in "\n;&|)":
                return ()
        stages = [self._command()]
        self._blank()
        while self.char == "|" and not self.peek("||"):
            if self.peek("|&"):
                self.bashism("|&")
            self.at += 2 if self.peek("|&") else 1
            self._lines()
            stages.append(self._command())
            self._blank()
        return tuple(stages)

    def _reserved(self) -> str:
        found = _RESERVED.match(self.source, self.at)
        if found is None:
            return ""
        if self.source.startswith("\\\n", found.end()):
            raise Unreadable("a line is broken in a word of the shell's own")
        return found.group()

    def _command(self) -> Command:
        self.count()
        timed, self._timed = self._timed, None
        if self.peek("(("):
            self.bashism("((")
            self.at += 2
            self.arithmetic("))")
            return Compound("arithmetic", (), (), self._redirects())
        if self.char == "(":
            self.at += 1
            body = self._list((")",))
            self.at += 1
            return Compound("group", (body,), (), self._redirects())
        word = self._reserved()
        if word in _STRAY:
            raise Unreadable(f"{word!r} stands where a command should begin")
        special = {
            "{": self._group,
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": self._for,
            "select": self._for,
            "case": self._case,
            "function": self._function,
            "[[": self._test,
        }.get(word)
        if special is None:
            return self._simple(timed)
        self.at += len(word)
        self._blank()
        return special()

    def _want(self, word: str) -> None:
        self._blank()
        if self._reserved() != word:
            raise Unreadable(f"{word!r} is missing")
        self.at += len(word)

    def _group(self) -> Compound:
        body = self._list(("}",))
        self._want("}")
        return Compound("group", (body,), (), self._redirects())

    def _if(self) -> Compound:
        scripts = [self._list(("then",))]
        self._want("then")
        while True:
            scripts.append(self._list(("elif", "else", "fi")))
            word = self._reserved()
            self.at += len(word)
            if word == "fi":
                return Compound("if", tuple(scripts), (), self._redirects())
            if word == "else":
                scripts.append(self._list(("fi",)))
                self._want("fi")
                return Compound("if", tuple(scripts), (), self._redirects())
            scripts.append(self._list(("then",)))
            self._want("then")

    def _while(self) -> Compound:
        condition = self._list(("do",))
        return Compound("while", (condition, self._do()), (), self._redirects())

    def _do(self) -> Script:
        self._want("do")
        body = self._list(("done",))
        self._want("done")
        return body

    def _for(self) -> Compound:
        words: list[Word] = []
        name = ""
        if self.peek("(("):
            self.bashism("((")
            self.at += 2
            self.arithmetic("))")
        else:
            name = self._name()
            self._lines()
            if self._reserved() == "in":
                self.at += 2
                self._blank()
                while self.char and self.char not in "\n;":
                    words.append(self._argument())
                    self._blank()
        self._blank()
        if self.char == ";":
            self.at += 1
        self._lines()
        return Compound("for", (self._do(),), tuple(words), self._redirects(), name)

    def _name(self) -> str:
        word = self.word()
        if not word.literal or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", word.literal):
            raise Unreadable("a name is missing")
        return word.literal

    def _argument(self) -> Word:
        found = self.word()
        if found.start == found.end:
            raise Unreadable(f"a word is missing: {self.source[self.at : self.at + 20]!r}")
        if self.char == "(":
            raise Unreadable("a ( stands behind a word")
        return found

    def _case(self) -> Compound:
        words = [self._argument()]
        self._lines()
        self._want("in")
        self._lines()
        scripts = []
        while self._reserved() != "esac":
            if self.char == "(":
                self.at += 1
            while True:
                self._blank()
                words.append(self._argument())
                self._blank()
                if self.char != "|":
                    break
                self.at += 1
            if self.char != ")":
                raise Unreadable("a pattern of `case` has no )")
            self.at += 1
            scripts.append(self._list((";;", "esac")))
            for mark in (";;&", ";;", ";&"):
                if self.peek(mark):
                    self.at += len(mark)
                    break
            self._lines()
        self.at += 4
        return Compound("case", tuple(scripts), tuple(words), self._redirects())

    def _function(self) -> Compound:
        self.bashism("`function`")
        name = self.word().literal
        self._blank()
        if self.peek("()"):
            self.at += 2
        return self._defined(name)

    def _defined(self, name: str | None) -> Compound:
        if not name:
            raise Unreadable("a function has no plain name")
        self._lines()
        if self.char != "(" and self._reserved() not in ("{", "if", "while", "until", "for", "select", "case"):
            raise Unreadable("a function has no body")
        body = self._command()
        return Compound("function", (Script(((body,),)),), (), (), name)

    def _test(self) -> Compound:
        """``[[ … ]]``, whose words are read by rules of their own."""
        self.bashism("[[")
        words: list[Word] = []
        while True:
            self._lines()
            if not self.char:
                raise Unreadable("[[ is never closed")
            if self._reserved() == "]]":
                self.at += 2
                return Compound("test", (), tuple(words), self._redirects())
            if self.peek("&&") or self.peek("||"):
                self.at += 2
            elif self.char in "()<>" and not self.peek("<(") and not self.peek(">("):
                self.at += 1
            elif words and words[-1].literal in ("=~", "==", "=", "!="):
                words.append(self._matched())
            else:
                words.append(self._argument())

    def _matched(self) -> Word:
        """What stands behind ``=~``: brackets in it, with what they hold, are part of the word."""
        start = self.at
        found = self.word(" \t\n;&<>()|")
        while self.char in ("(", "|") and not self.peek("||"):
            if self.char == "(":
                end = re.compile(r"\([^()'\"\\$`<>;&]*\)").match(self.source, self.at)
                if end is None:
                    raise Unreadable("a pattern in [[ … ]] is too much")
                self.at = end.end()
            else:
                self.at += 1
            more = self.word(" \t\n;&<>()|")
            found = Word((*found.pieces, *more.pieces), (*found.scripts, *more.scripts), start, self.at)
        if start == self.at:
            raise Unreadable("a word is missing in [[ … ]]")
        return found

    def _redirects(self) -> tuple[Redirect, ...]:
        found = []
        self._blank()
        while (redirect := self._redirect()) is not None:
            found.append(redirect)
            self._blank()
        return tuple(found)

    def _redirect(self) -> Redirect | None:
        at = self.at
        number = _DESCRIPTOR.match(self.source, at)
        if number:
            at = number.end()
        if self.source.startswith(("<(", ">("), at):
            if number:
                raise Unreadable("a number stands before a process substitution")
            return None
        found = _REDIRECT.match(self.source, at)
        if found is None:
            return None
        operator = found.group()
        if operator in ("&>", "&>>", "<<<", "<>"):
            self.bashism(operator)
        if number and number.group().startswith("{"):
            self.bashism("{name}>")
        self.at = found.end()
        self._blank()
        target = self._argument()
        redirect = Redirect(operator, target)
        if operator in ("<<", "<<-"):
            if not all(isinstance(p, Text) for p in target.pieces) or self.source[target.start] in "$":
                raise Unreadable("the end of a here-document isn't plain")
            if "\n" in self.source[target.start : target.end]:
                raise Unreadable("the end of a here-document isn't plain")
            self._pending.append(redirect)
        return redirect

    def _simple(self, timed: int | None) -> Command:
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        start, declares = self.at, False
        while True:
            self._blank()
            redirect = self._redirect() if self.char in "<>&{0123456789" else None
            if redirect is not None:
                redirects.append(redirect)
                continue
            if not self.char or (self.char in META and not self.peek("<(") and not self.peek(">(")):
                break
            if not words or declares:
                assigned = self._assignment(words)
                if assigned is not None:
                    assignments.append(assigned)
                    continue
            word = self.word()
            if not words:
                if self._after_name() and not redirects and not assignments and word.literal:
                    return self._defined(word.literal)
                if word.literal and _RESERVED.fullmatch(word.literal) and word.literal not in ("in", "]]"):
                    # Written with a broken line, or behind an assignment or redirection.
                    raise Unreadable("a word of the shell's own stands where a program should")
                plain = "".join(p.text for p in word.pieces if isinstance(p, Text) and not p.quoted)
                if "=" in plain and "\\\n" in self.source[word.start : word.end]:
                    raise Unreadable("a line is broken in what could be an assignment")
                self.begins.append(word.start if timed is None else timed)
                declares = word.literal in DECLARE
            if self.char == "(":
                raise Unreadable("a ( stands behind a word")
            words.append(word)
        if self.at == start or not (assignments or words or redirects):
            raise Unreadable(f"a command is missing: {self.source[self.at : self.at + 20]!r}")
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    def _after_name(self) -> bool:
        """Whether ``()`` follows, which makes the word before it a function's name."""
        found = re.compile(r"[ \t]*\([ \t]*\)").match(self.source, self.at)
        if found is None:
            return False
        self.at = found.end()
        return True

    def _assignment(self, words: list[Word]) -> Assignment | None:
        """``NAME=value``. Behind a builtin that declares, the word counts as an argument, too."""
        found = _ASSIGNED.match(self.source, self.at)
        if found is None:
            if _SUBSCRIPT.match(self.source, self.at) and not _PLAIN_SUBSCRIPT.match(self.source, self.at):
                raise Unreadable("a subscript isn't plain")
            return None
        if "[" in found.group():
            self.notes.arithmetic = self.notes.arithmetic or not re.search(r"\[[0-9]*\]", found.group())
        start, listed = self.at, False
        if self.source.startswith("(", found.end()):
            self.bashism("an array")
            self.notes.lists.add(found[1])
            listed = True
            self.at = found.end() + 1
            values = []
            self._lines()
            while self.char != ")":
                if self.char in ("[",):
                    inside = re.compile(r"\[[A-Za-z0-9_]+\]=").match(self.source, self.at)
                    if inside is None:
                        raise Unreadable("a subscript isn't plain")
                    self.notes.arithmetic = True
                values.append(self._argument())
                self._lines()
            self.at += 1
        else:
            word = self.word()
            values = [_without(word, found.end() - found.start())]
            if self.char == "(":
                raise Unreadable("a ( stands behind a word")
        if words:
            shown = () if listed else values[0].pieces
            pieces = (Text(found.group(), True), *(p._replace(quoted=True) for p in shown))
            words.append(Word(pieces, (), start, self.at))
        return Assignment(found[1], tuple(values))


def _without(word: Word, count: int) -> Word:
    """A word without its first characters, which are plain but for holes in a subscript."""
    pieces = list(word.pieces)
    while pieces:
        first = pieces.pop(0)
        if isinstance(first, Text) and "=" in first.text:
            rest = first.text.partition("=")[2]
            pieces.insert(0, Text(rest, False))
            break
    return Word(tuple(pieces), word.scripts, word.start + count, word.end)
