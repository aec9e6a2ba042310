"""The layout pass: a first pass over a text, before the grammar parses it.

One regular expression finds strings, comments, names and brackets. The pass has four tasks. It enforces the limits that protect
both parsers (bytes, nesting, literals). It refuses characters that make the displayed text differ from the real text. It collects
the comments. And it finds the places where `match` and `case` are keywords. Python finds them by backtracking. This pass uses two
rules instead. A line is a `match` statement if it begins with `match` and ends with a colon, which is impossible for other
statements. `case` is a keyword only directly inside a `match` block.

`Layout` then adds indentation to Lark's stream of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lark import Token

from albert_tools.grammar.diagnostic import Diagnostic, Edit, Fix, Span

#: Nesting of brackets. CPython's own limit is 200.
MAX_NESTING = 50
#: Nesting of blocks. This limit protects the parsers. The checker has a lower limit that protects readers.
MAX_INDENTS = 40
#: The length of one string literal, in characters. Longer data should be in a file.
MAX_STRING_LITERAL = 64 * 1024
#: The length of one number literal, in characters. CPython converts at most 4300 digits.
MAX_NUMBER_LITERAL = 128

_TOKEN = re.compile(
    r"""
    (?P<string>(?:[rR][bBfF]?|[bBfF][rR]?|[uU])?
        (?:\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\.)*?(?:'''|\Z)
          |"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z)|'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\Z)))
  | (?P<comment>\#[^\n]*)
  | (?P<newline>\n)
  | (?P<name>[^\W\d]\w*)
  | (?P<number>[0-9][0-9A-Za-z_.]*)
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
  | (?P<space>[ ]+|\\\n)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

#: Characters that change how a text is displayed. Because of them, a reviewer could see a different program.
_DECEPTIVE = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u200b\u2060\ufeff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(slots=True)
class Scan:
    """The result of the pass. `soft` maps the offset of each soft keyword to its terminal."""

    soft: dict[int, str] = field(default_factory=dict)
    comments: list[tuple[int, str, bool]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    line_starts: list[int] = field(default_factory=list)

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets of the text."""
        from bisect import bisect_right

        first = bisect_right(self.line_starts, start)
        last = bisect_right(self.line_starts, end)
        return Span(first, start - self.line_starts[first - 1] + 1, last, end - self.line_starts[last - 1] + 1)


def scan(text: str) -> Scan:
    """Read the layout of a text. All its lines end with ``\\n``, including the last one."""
    found = Scan()
    starts = found.line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
    report = found.diagnostics.append

    for pattern, what in ((_CONTROL, "control"), (_DECEPTIVE, "invisible or direction-changing")):
        for m in pattern.finditer(text):
            report(
                Diagnostic(
                    "bad-character",
                    f"the {what} character U+{ord(m[0]):04X} is not allowed in a source",
                    found.span(m.start(), m.end()),
                    hint=f'write it as an escape: "\\u{ord(m[0]):04x}"',
                )
            )

    depth = 0
    indents = [0]
    match_levels: list[int] = []
    expects_cases = False
    first: re.Match[str] | None = None
    last = ""
    count = 0
    begin = 0
    reported_nesting = False
    for m in _TOKEN.finditer(text):
        kind = m.lastgroup
        token = m[0]
        if kind == "space":
            continue
        if kind == "comment":
            line_start = starts[found.span(m.start(), m.start()).line - 1]
            found.comments.append((m.start(), token, not text[line_start : m.start()].strip()))
            continue
        if kind == "newline":
            if depth == 0 and first is not None:
                if first[0] == "match" and last == ":" and count > 2:
                    found.soft[first.start()] = "_MATCH"
                    expects_cases = True
                first, count, last = None, 0, ""
            continue
        if first is None and depth == 0:
            first = m
            begin = m.start() - starts[found.span(m.start(), m.start()).line - 1]
            while indents[-1] > begin:
                indents.pop()
            if begin > indents[-1]:
                indents.append(begin)
                if len(indents) == MAX_INDENTS + 2:
                    report(
                        Diagnostic(
                            "nesting-too-deep",
                            f"blocks are nested more than {MAX_INDENTS} deep",
                            found.span(m.start(), m.end()),
                            hint="move the inner blocks into helpers",
                        )
                    )
            while match_levels and match_levels[-1] > begin:
                match_levels.pop()
            if expects_cases:
                match_levels.append(begin)
                expects_cases = False
            if token == "case" and match_levels and match_levels[-1] == begin:
                found.soft[m.start()] = "_CASE"
        count += 1
        last = token
        if kind == "open":
            depth += 1
            if depth > MAX_NESTING and not reported_nesting:
                reported_nesting = True
                report(
                    Diagnostic(
                        "nesting-too-deep",
                        f"brackets are nested more than {MAX_NESTING} deep",
                        found.span(m.start(), m.end()),
                        hint="name the inner parts: assign them to variables first",
                    )
                )
        elif kind == "close":
            depth = max(0, depth - 1)
        elif kind == "name" and not token.isascii():
            report(
                Diagnostic(
                    "non-ascii-name",
                    f"the name {token!r} has letters outside ASCII",
                    found.span(m.start(), m.end()),
                    hint="spell names with a-z, A-Z, 0-9 and _; Python would fold look-alikes into one name",
                )
            )
        elif kind == "number" and len(token) > MAX_NUMBER_LITERAL:
            report(
                Diagnostic(
                    "literal-too-long",
                    f"a number of {len(token)} characters; at most {MAX_NUMBER_LITERAL} are allowed",
                    found.span(m.start(), m.end()),
                    hint="compute it, for example with 10 ** n",
                )
            )
        elif kind == "string":
            _check_string(token, m, found)
        elif token == "\t":
            report(
                Diagnostic(
                    "tab",
                    "a tab is used outside a string",
                    found.span(m.start(), m.end()),
                    hint="indent with four spaces",
                    fix=Fix("replace the tab by four spaces", (Edit(found.span(m.start(), m.end()), "    "),)),
                )
            )
    return found


def _check_string(token: str, m: re.Match[str], found: Scan) -> None:
    quote = re.sub(r"\A[A-Za-z]*", "", token)
    mark = quote[:3] if quote[:3] in ('"""', "'''") else quote[:1]
    if len(quote) < 2 * len(mark) or not quote.endswith(mark):
        found.diagnostics.append(
            Diagnostic(
                "unterminated-string",
                f"this string is not closed; its closing {mark} is missing",
                found.span(m.start(), min(m.start() + 20, m.start() + len(token.split("\n")[0]))),
                hint=f"add {mark} where it ends"
                + ("" if len(mark) == 3 else '; a string over several lines begins and ends with """'),
            )
        )
    elif len(token) > MAX_STRING_LITERAL:
        found.diagnostics.append(
            Diagnostic(
                "literal-too-long",
                f"a string of {len(token)} characters; at most {MAX_STRING_LITERAL} are allowed",
                found.span(m.start(), m.end()),
                hint="keep long data in a file and read it with tools.read_file",
            )
        )


class DedentError(Exception):
    """The indentation of a line matches no enclosing block."""

    def __init__(self, token: Token) -> None:
        super().__init__("unindent does not match any outer indentation level")
        self.token = token


class Layout:
    """Lark's `postlex`. It drops line ends inside brackets, adds indents and dedents, and marks soft keywords."""

    # The lexer accepts names in every state. Otherwise it would not find `case` where only a keyword is allowed.
    always_accept = ("_NEWLINE", "NAME")

    def __init__(self) -> None:
        self.soft: dict[int, str] = {}

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The stream with added indents and dedents."""
        depth = 0
        indents = [0]
        token = None
        for token in stream:
            kind = token.type
            if kind == "_NEWLINE":
                if depth:
                    continue
                yield token
                width = len(token.rpartition("\n")[2])
                if width > indents[-1]:
                    indents.append(width)
                    yield Token.new_borrow_pos("_INDENT", "", token)
                else:
                    while width < indents[-1]:
                        indents.pop()
                        yield Token.new_borrow_pos("_DEDENT", "", token)
                    if width != indents[-1]:
                        raise DedentError(token)
                continue
            if kind == "NAME":
                soft = self.soft.get(token.start_pos or 0) if self.soft else None
                if soft:
                    yield Token.new_borrow_pos(soft, token.value, token)
                    continue
            elif kind in ("LPAR", "LSQB", "LBRACE"):
                depth += 1
            elif kind in ("RPAR", "RSQB", "RBRACE"):
                depth -= 1
            yield token
        while len(indents) > 1:
            indents.pop()
            yield Token.new_borrow_pos("_DEDENT", "", token) if token else Token("_DEDENT", "")
