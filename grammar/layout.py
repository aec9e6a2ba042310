"""The layout pass: one scan that turns a text into tokens, before the grammar parses them.

The scanner's regular expression is made of the grammar's terminals. The pass has five tasks. It adds indentation to the tokens. It
enforces the limits that protect both parsers (nesting, literals). It refuses characters that make the displayed text differ from
the real text. It collects the comments. And it finds the places where `match` and `case` are keywords. Python finds them by
backtracking. This pass uses two rules instead. A line is a `match` statement if it begins with `match` and ends with a colon, which
is impossible for other statements. `case` is a keyword only directly inside a `match` block.

A text that the scanner can't read becomes a token that no rule of the grammar accepts, so the parser refuses it at its place.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from lark.lexer import PatternStr, TerminalDef
from msgspec import Struct, field

from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span
from albert_tools.grammar.source_text import BLANK
from albert_tools.grammar.tree import Comment

#: Nesting of brackets. CPython's own limit is 200.
MAX_NESTING = 50
#: Nesting of blocks. This limit protects the parsers. The checker has a lower limit that protects readers.
MAX_INDENTS = 40
#: The length of one string literal, in characters. Longer data should be in a file.
MAX_STRING_LITERAL = 64 * 1024
#: The length of one number literal, in characters. CPython converts at most 4300 digits.
MAX_NUMBER_LITERAL = 128

#: A string that is not closed ends with its line, or with the text after three quotes.
_UNCLOSED = r"""
    (?:[rR][bBfF]?|[bBfF][rR]?|[uU])?
    (?P<mark>\"\"\"|'''|"|')
    (?:(?<=\"\"\"|''')(?s:.*)|(?:(?!(?P=mark))[^\\\n]|\\(?s:.))*)
"""
#: The parts of a text that are not terminals.
_OTHER = r"""
    (?P<newline>(?:[ ]*(?:\#[^\n]*)?\n)+[ ]*)
  | (?P<continuation>\\\n)
  | (?P<bad>\w+|.)
"""


class Token(NamedTuple):
    """A token with the attributes that Lark reads."""

    type: str
    value: str
    line: int
    column: int
    end_line: int
    end_column: int
    # Lark copies them, and nothing here reads them.
    start_pos: int = 0
    end_pos: int = 0

    @property
    def span(self) -> Span:
        """The place of the token."""
        return Span(self.line, self.column, self.end_line, self.end_column)


class Scan(Struct):
    """The result of the pass. If there are diagnostics, the tokens must not be parsed."""

    tokens: list[Token] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


class Scanner:
    """Scans texts. `terminals` are those of the grammar: fixed texts, such as keywords, and regular expressions."""

    def __init__(self, terminals: Iterable[TerminalDef]) -> None:
        texts = {t.pattern.value: t.name for t in terminals if isinstance(t.pattern, PatternStr)}
        patterns = {t.name: t.pattern.to_regexp() for t in terminals if not isinstance(t.pattern, PatternStr)}
        #: A keyword of Python that is not in the grammar has a type that the grammar does not know.
        self._words = {
            **dict.fromkeys(keyword.kwlist, "KEYWORD"),
            **{t: n for t, n in texts.items() if t.isidentifier()},
        }
        self._signs = {t: n for t, n in texts.items() if not t.isidentifier()}
        signs = "|".join(re.escape(s) for s in sorted(self._signs, key=len, reverse=True))
        # The order matters: the prefix of a string is also a name, and a sign can begin with another.
        strings, *others = (f"(?P<{n}>{patterns[n]})" for n in ("STRING", "NAME", "NUMBER", "AUGMENTED", "OPERATOR"))
        parts = [strings, f"(?P<unclosed>(?x:{_UNCLOSED}))", *others, f"(?P<sign>{signs})", f"(?x:{_OTHER})"]
        self._pattern = re.compile(f"[ ]*(?:{'|'.join(parts)})")

    def scan(self, text: str, line: int = 1, column: int = 1) -> Scan:
        """Scan a text that begins at `line` and `column`. All its lines end with ``\\n``, including the last one."""
        scan = Scan()
        tokens = scan.tokens
        words, signs = self._words, self._signs
        line_start = 1 - column
        depth = 0
        too_deep = False
        indents = [0]
        first = 0  # the index of the first token of the logical line
        soft = _SoftKeywords(tokens)
        for m in self._pattern.finditer(text):
            kind = m.lastgroup or ""
            start, end = m.span(kind)
            value = m[kind]
            begin, first_line = start - line_start + 1, line
            if kind == "NAME":
                kind = words.get(value, "NAME")
            elif kind == "sign":
                kind = signs[value]
                if value in "([{":
                    depth += 1
                    if depth > MAX_NESTING and not too_deep:
                        too_deep = True
                        place = Span(line, begin, line, begin + 1)
                        scan.diagnostics.append(_too_deep("brackets", MAX_NESTING, place))
                elif value in ")]}":
                    depth = max(0, depth - 1)
            elif kind == "newline":
                if "#" in value:
                    scan.comments += _comments(value, line, begin, bool(tokens) and tokens[-1].end_line == line)
                newline = Token("_NEWLINE", "", line, begin, line, begin)
                line += value.count("\n")
                line_start = start + value.rindex("\n") + 1
                if depth:
                    continue
                if len(tokens) > first:
                    soft.mark(first, indents[-1])
                    newline = newline._replace(column=tokens[-1].end_column)
                    tokens.append(newline)
                width = end - line_start
                if width > indents[-1]:
                    indents.append(width)
                    tokens.append(newline._replace(type="_INDENT"))
                    if len(indents) == MAX_INDENTS + 2:
                        scan.diagnostics.append(
                            _too_deep("blocks", MAX_INDENTS, Span(line, width + 1, line, width + 2))
                        )
                while width < indents[-1]:
                    indents.pop()
                    tokens.append(newline._replace(type="_DEDENT"))
                if width != indents[-1]:
                    tokens.append(Token("MISALIGNED", "", line, 1, line, 2))
                first = len(tokens)
                continue
            elif "\n" in value:  # a continuation, or a string of several lines
                line += value.count("\n")
                line_start = start + value.rindex("\n") + 1
                if kind == "continuation":
                    continue
            token = Token(kind, value, first_line, begin, line, end - line_start + 1)
            tokens.append(token)
            if kind in _LIMITED or not value.isascii():
                scan.diagnostics += _problems(token)
        if not text.translate(_LAYOUT).isprintable() or BLANK.search(text):
            scan.diagnostics += _hidden(text)
        return scan


class _SoftKeywords:
    """Marks `match` and `case` where they are keywords. It is called for each logical line."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._levels: list[int] = []
        self._expects_cases = False

    def mark(self, first: int, indent: int) -> None:
        """Mark the first token of a logical line with this indentation, if it is a soft keyword."""
        levels, tokens = self._levels, self._tokens
        while levels and levels[-1] > indent:
            levels.pop()
        if self._expects_cases:
            levels.append(indent)
            self._expects_cases = False
        word = tokens[first].value
        if word == "case" and levels and levels[-1] == indent:
            tokens[first] = tokens[first]._replace(type="_CASE")
        elif word == "match" and tokens[-1].value == ":" and len(tokens) > first + 2:
            tokens[first] = tokens[first]._replace(type="_MATCH")
            self._expects_cases = True


def _comments(text: str, line: int, column: int, after_code: bool) -> Iterable[Comment]:
    """The comments between two tokens."""
    for i, part in enumerate(text.split("\n")):
        at = part.find("#")
        if at >= 0:
            begin = at + (1 if i else column)
            comment = part[at:]
            yield Comment(Span(line + i, begin, line + i, begin + len(comment)), comment, bool(i) or not after_code)


_LIMITED = frozenset({"NUMBER", "STRING", "unclosed", "bad"})


def _problems(token: Token) -> Iterable[Diagnostic]:
    """The reason why a token is refused, if there is one: it is too long, outside ASCII, not closed, or a tab."""
    kind, value = token.type, token.value
    if kind == "NAME" and not value.isascii():
        yield Diagnostic(
            "non-ascii-name",
            f"the name {value!r} has letters outside ASCII",
            token.span,
            hint="spell names with a-z, A-Z, 0-9 and _; Python would fold look-alikes into one name",
        )
    elif kind == "NUMBER" and len(value) > MAX_NUMBER_LITERAL:
        yield Diagnostic(
            "literal-too-long",
            f"a number of {len(value)} characters; at most {MAX_NUMBER_LITERAL} are allowed",
            token.span,
            hint="compute it, for example with 10 ** n",
        )
    elif kind == "STRING" and len(value) > MAX_STRING_LITERAL:
        yield Diagnostic(
            "literal-too-long",
            f"a string of {len(value)} characters; at most {MAX_STRING_LITERAL} are allowed",
            token.span,
            hint="keep long data in a file and read it with tools.read_file",
        )
    elif kind == "unclosed":
        mark = value.lstrip("rRbBfFuU")
        mark = mark[:3] if mark[:3] in ('"""', "'''") else mark[0]
        width = min(20, len(value.partition("\n")[0]))
        yield Diagnostic(
            "unterminated-string",
            f"this string is not closed; its closing {mark} is missing",
            Span(token.line, token.column, token.line, token.column + width),
            hint=f"add {mark} where it ends"
            + ("" if len(mark) == 3 else '; a string over several lines begins and ends with """'),
        )
    elif value == "\t":
        yield Diagnostic(
            "tab",
            "a tab is used outside a string",
            token.span,
            hint="indent with four spaces",
            fix=Fix("replace the tab by four spaces", (Edit(token.span, "    "),)),
        )


def _too_deep(what: str, limit: int, span: Span) -> Diagnostic:
    hint = (
        "move the inner blocks into helpers"
        if what == "blocks"
        else "name the inner parts: assign them to variables first"
    )
    return Diagnostic("nesting-too-deep", f"{what} are nested more than {limit} deep", span, hint=hint)


#: Line ends and tabs, which are checked elsewhere.
_LAYOUT = {ord("\n"): None, ord("\t"): None}


def _hidden(text: str) -> Iterable[Diagnostic]:
    for number, line in enumerate(text.split("\n"), 1):
        for i, c in enumerate(line):
            if c == "\t" or (c.isprintable() and not BLANK.match(c)) or _joins_emoji(line, i):
                continue
            what = "control" if unicodedata.category(c) == "Cc" else "invisible or direction-changing"
            escape = f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"
            yield Diagnostic(
                "bad-character",
                f"the {what} character U+{ord(c):04X} is not allowed in a source",
                Span(number, i + 1, number, i + 2),
                hint=f'write it as an escape: "{escape}"',
            )


def _joins_emoji(line: str, i: int) -> bool:
    """Whether the character is the part of an emoji that selects its form or joins it to the next."""
    before, after = line[i - 1 : i], line[i + 1 : i + 2]
    if line[i] == "\ufe0f":
        return before in _WITH_FORM or _is_symbol(before) or (before in "0123456789#*" and after == "\u20e3")
    return line[i] == "\u200d" and (before == "\ufe0f" or _is_symbol(before)) and _is_symbol(after)


#: Characters with an emoji form that are no symbols.
_WITH_FORM = ("\u203c", "\u2049", "\u2139", "\u3030", "\u303d")


def _is_symbol(c: str) -> bool:
    return not c.isascii() and unicodedata.category(c) in ("So", "Sk", "Sm")
