"""A text for bash, read so strictly that bash must find the same words and operators.

tree-sitter's grammar of bash proposes a structure. It misreads some texts without reporting an error, so the proposal is accepted
only if

1. the tree has no ERROR and no MISSING node,
2. each node is of a kind listed here,
3. each byte lies in a leaf or in a blank, and newlines lie only between commands,
4. each leaf matches a pattern that bash certainly reads that way,
5. each here-document that was cut out beforehand is found again.

Everything else is `Unreadable`. What is accepted becomes a list of actions: the calls, the files written by redirections, and the
variables set. All branches count, also those that bash would skip.

A text for `sh` may only have the nodes that POSIX describes, because `sh` can be another shell, such as dash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from albert_tools.engine.shell.here_documents import MARKER, without_here_documents
from albert_tools.engine.shell.marks import MARK, with_marks
from albert_tools.engine.shell.programs import starts_nothing
from albert_tools.engine.shell.word import ANY, HOLE, Unclear, Unreadable, Word

#: Characters of a text, its here-documents included.
MAX_LENGTH = 32 * 1024
#: Bytes of a text without its here-documents, and the operators, quotes and globs in it. tree-sitter's recovery from errors takes
#: a time that grows with the square of these, and holds up the other threads meanwhile.
MAX_READ = 8 * 1024
MAX_SIGNS = 400
#: The programs that read a text as this module does.
SHELLS = ("bash", "sh")
#: Levels of substitutions and groups. Each takes some five frames of the interpreter's stack.
MAX_DEPTH = 24
MAX_NODES = 10_000
#: A redirection that gives an empty input.
FROM_NULL = re.compile(r"<\s*/dev/null(?!\S)")


class Write(NamedTuple):
    """A redirection into a file. `empties` says that nothing is written, so the file only loses its content."""

    target: Word
    text: str
    empties: bool = False


class SimpleCommand(NamedTuple):
    """A simple command: a program with its arguments, none for assignments alone. `writes` get what it prints. `fed` says whether a
    pipe or a redirection, of the command or around it, gives it an input."""

    argv: tuple[Word, ...]
    text: str
    writes: tuple[Write, ...]
    fed: bool


class Binding(NamedTuple):
    """A variable that is set, for one command or (`exported`) for the programs that follow."""

    name: str
    value: Word
    exported: bool
    text: str


Action = SimpleCommand | Write | Binding

# Nodes that hold commands. Blanks and newlines may stand between them.
_COMMANDS = frozenset(
    "program list pipeline subshell compound_statement do_group if_statement elif_clause else_clause while_statement "
    "negated_command for_statement case_statement case_item command_substitution process_substitution redirected_statement".split()
)
_SIGNS = frozenset(
    "; & && || | |& ( ) { } $( <( >( do done if then elif else fi while until for in ! case esac ;; \n `".split(" ")
)
_ENDS = frozenset("} done fi esac ]] ]".split())
_RESERVED = frozenset("{ ! do then if elif else while until for in case".split()) | _ENDS
# Reserved words that the grammar sometimes takes for the name of a program.
_NO_PROGRAM = _RESERVED | frozenset("function select coproc [[".split())
# Words and pieces of words, and the spellings that bash certainly reads as such.
_SPELLINGS = {
    "word": r"(?!\#)(?:[\w@%+=:,./~*?^!#{}\[\]-]|\\[^\n])+",
    "number": r"-?[0-9]+",
    "variable_name": r"[A-Za-z_][A-Za-z0-9_]*",
    "raw_string": r"'[^']*'",
    "ansi_c_string": r"\$'(?:[^'\\]|\\.)*'",
    "simple_expansion": r"\$(?:[A-Za-z0-9_]+|[?#@*$!-])",
    "expansion": r"\$\{#?[A-Za-z_]\w*(?:(?::?[-+?]|%%?|\#\#?)[\w./*:@,+ -]*)?\}",
    "arithmetic_expansion": r"\$\(\([0-9 +*/%()<>=-]*\)\)",
    "brace_expression": r"\{[0-9]{1,3}\.\.[0-9]{1,3}\}",
    "extglob_pattern": r"[\w.*?/:@+-]+",
    # Bash evaluates `$[x]` like `$((x))`.
    "regex": r"(?:[\w.*?+^()|\[\]/:@,-]|\$(?![\[({]))+",
}
_WORD_PATTERNS = {kind: re.compile(pattern, re.DOTALL) for kind, pattern in _SPELLINGS.items()}
_WORDS = frozenset((*_SPELLINGS, "string", "concatenation", "command_substitution", "process_substitution"))
_IN_STRINGS = frozenset(("simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"))
# The nodes that every POSIX shell reads as bash does: compounds, words, signs.
_POSIX = frozenset(
    """
    program list pipeline subshell compound_statement do_group if_statement elif_clause else_clause while_statement negated_command
    for_statement case_statement case_item command_substitution redirected_statement command command_name comment test_command
    unary_expression binary_expression test_operator variable_assignment variable_name special_variable_name file_redirect
    file_descriptor word number raw_string string string_content concatenation simple_expansion expansion arithmetic_expansion
    extglob_pattern
    ; & && || | ( ) { } $( do done if then elif else fi while until for in ! case esac ;; ` [ ] = != " $ ${ # :- :+ :? - + ? % %% ##
    $(( )) * / < > >> >| >& <&
    """.split()
) | {"\n"}

# ``~``, ``~+`` or ``~name`` for a folder: at the start of a word, and behind `=` and `:` in a word like ``if=~/a``.
_TILDE = re.compile(r"(^|[=:])~[^/:]*")
_SIGN = re.compile(r"[^\w\s./,:=%@+~^-]")
_NOTHING = re.compile("")
_BLANK = re.compile(r"(?:[ \t]+(?:\\\n[ \t]*)*)?")
_SPACE = re.compile(r"(?:[ \t\n]|(?<=[ \t])\\\n)*")
_DOUBLE_QUOTED = re.compile(r'(?:[^"\\$`]|\\.)*', re.DOTALL)
_ESCAPED = re.compile(r'\\([$`"\\\n])')
#: What bash takes for ordinary characters of a word, and make or another shell for the beginning of code or of a line.
_QUOTED_CODE = {
    "raw_string": re.compile(r"[$`\n]"),
    "ansi_c_string": re.compile(r"(?<=.)[\\$`\n]", re.DOTALL),
    "string": re.compile(r"\\[$`]|\n"),
}
_ESCAPED_CODE = re.compile(r"\\[$`]")

_OVERWRITES = frozenset((">", ">|", "&>"))
_WRITES = _OVERWRITES | {">>", "&>>"}
#: The words with which these programs print nothing.
_SILENT_WITH = {"echo": "|-n", "printf": "|%s", "cat": "|-.*|/dev/null"}
_STREAMS = re.compile(r"/dev/(null|stdout|stderr)")
# Operators of tests that only look. `-eq` and the like evaluate arithmetic, which runs commands in `[[`; `-v` does in both.
_UNARY = re.compile(r"-[nzfderswxhL]")
_BINARY = re.compile(r"=|==|!=|-(eq|ne|lt|le|gt|ge|nt|ot|ef)|[<>]")
#: A test whose error has no word that could be code: no comparison of numbers, or nothing but numbers and names.
_HARMLESS_ERROR = re.compile(r"(?!.*-(eq|ne|lt|le|gt|ge)\b).*|(\$[?#]|[\w ./:=,()\[\]\"!-])*", re.DOTALL)
_DOUBLE_BRACKET = re.compile(r"-[nzfderswxhL]|[<>!()=]|==|!=|=~|&&|\|\|")


@cache
def _language() -> Any:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


#: Bash takes each byte beyond ASCII for a part of a word, like a letter. No reserved word has a Z.
_LETTERS = bytes(range(128)) + b"Z" * 128


def _parse(data: bytes) -> Any:
    """The root of tree-sitter's tree. Each call has a parser of its own, since threads judge commands.

    The grammar's scanner looks characters up in tables of C that end at 255: for others it reads beyond them, or crashes
    (tree-sitter-bash, issue 337). So it gets a letter in place of each byte beyond ASCII. Words are taken from the real text.
    """
    import tree_sitter

    return tree_sitter.Parser(_language()).parse(data.translate(_LETTERS)).root_node


def _all_in(node: Any) -> Iterator[Any]:
    pending = [node]
    while pending:
        yield (node := pending.pop())
        pending += node.children


class Reader:
    """Reads one text, for `sh` if it is `posix`, otherwise for bash. After an error `actions` has what was found before it.

    If the text is `marked`, its marks stand for holes, see `marks`.
    """

    def __init__(self, source: str, posix: bool = False, marked: bool = False) -> None:
        self.source = source
        self._posix = posix
        self._marked = marked
        #: Whether something around the present command gives it an input.
        self._fed = False
        self.actions: list[Action] = []
        #: Whether commands run repeatedly; whether they can go on after the text, in the background.
        self.repeats = self.lasts = False
        #: Whether bash can print a part of the text that another program would take for code: in the error of a test, or because
        #: it prints the text of what a signal ends.
        self.prints_code = False
        #: Whether a comment could be such code. Bash prints it only in backquotes, or if another bash has been given this text.
        self.comments_code = False
        #: The actions in loops.
        self.looped: list[Action] = []
        self._data = b""
        self._nodes = 0
        self._markers = 0
        self._unclear: Unclear | None = None

    def read(self) -> None:
        """Fill `actions`.

        Raises:
            Unclear: the text has a form that is not among the plain ones, or cannot be read with certainty.
        """
        if len(self.source) > MAX_LENGTH:
            raise Unreadable(f"it is longer than {MAX_LENGTH:,} characters")
        if HOLE in self.source or MARKER in self.source:
            raise Unreadable("it holds characters that a shell does not take")
        text, here_documents = without_here_documents(self.source)
        self._data = text.encode("utf-8", "replace")
        if len(self._data) > MAX_READ or len(_SIGN.findall(text)) > MAX_SIGNS:
            raise Unreadable(
                f"it is longer than {MAX_READ:,} bytes, or has more than {MAX_SIGNS} operators, quotes and globs"
            )
        root = _parse(self._data)
        if root.has_error:
            raise Unreadable("it cannot be read with certainty")
        if self._posix and (other := next((n for n in _all_in(root) if n.type not in _POSIX), None)) is not None:
            raise Unreadable("sh and bash may read it differently", self._text(other))
        self._demand_covered(root, 0, len(self._data), _SPACE)
        self._statement(root, 0)
        if self._markers != here_documents:
            raise Unreadable("the start of a here-document is not certain")
        if self._unclear is not None:
            raise self._unclear

    # Text.

    def _slice(self, begin: int, end: int) -> str:
        return self._data[max(begin, 0) : end].decode("utf-8", "replace")

    def _text(self, node: Any) -> str:
        return self._slice(node.start_byte, node.end_byte)

    def _demand_covered(self, node: Any, begin: int, end: int, between: re.Pattern[str]) -> None:
        """Nothing but separators stands before, between and after the children of a node."""
        at = begin
        for child in node.children:
            if not between.fullmatch(self._slice(at, child.start_byte)):
                raise Unreadable("it is not certain where its words begin", self._text(node))
            at = child.end_byte
        if not between.fullmatch(self._slice(at, end)):
            raise Unreadable("it is not certain where its words end", self._text(node))

    def _inside_covered(self, node: Any, between: re.Pattern[str]) -> None:
        self._demand_covered(node, node.start_byte, node.end_byte, between)

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise Unreadable("it is nested too deeply, or too long")

    def _demand_apart(self, nodes: Sequence[Any], about: str) -> None:
        """Each of these words is followed by a blank."""
        if any(left.end_byte == right.start_byte for left, right in pairwise(nodes)):
            raise Unreadable("it is not certain where its words end", about)

    # Commands.

    def _statement(self, node: Any, depth: int) -> None:
        """A node that holds commands, or a sign between them."""
        self._count(depth)
        kind = node.type
        self.lasts = self.lasts or kind in ("&", "process_substitution")
        self.repeats = self.repeats or kind in ("for_statement", "while_statement")
        if kind == "comment":
            if self._slice(node.start_byte - 1, node.start_byte) not in ("", " ", "\n", ";", "\t", "#"):
                raise Unreadable("it is not certain whether this is a comment", self._text(node))
            if re.search(r"[$`]", self._text(node)):
                self.comments_code = True
                self.prints_code = self.prints_code or self._is_in_backquotes(node)
        elif kind == "command":
            self._command(node, (), depth)
        elif kind == "test_command":
            self._test(node, depth)
        elif kind == "variable_assignment":
            self._assignment(node, depth)
        elif kind == "declaration_command" and node.children[0].type == "export":
            self._inside_covered(node, _BLANK)
            for child in node.children[1:]:
                self._assignment(child, depth, exported=True)
        elif kind in _COMMANDS and not (kind == "compound_statement" and node.children[0].type == "(("):
            self._inside_covered(node, _SPACE)
            begin = len(self.actions)
            self._compound(node, depth)
            if kind in ("for_statement", "while_statement"):
                self.looped += self.actions[begin:]
            if kind == "pipeline" and len(self.actions) < MAX_NODES:
                # All of it runs at once, so a later part may write what an earlier one runs.
                self.actions += self.actions[begin:]
        elif kind in _RESERVED:
            self._demand_alone(node)
        elif kind not in _SIGNS or node.children:
            raise Unreadable(
                f"it has a form that is not among the plain ones ({kind.replace('_', ' ')})", self._text(node)
            )
        elif kind == "`":
            # Bash looks for the second one first, also within quotes.
            text = self._text(node.parent)
            if re.search(r"[\\`]", text[1:-1]) or (self._marked and MARK.search(text)):
                raise Unreadable("it has backslashes or backquotes within backquotes", text)

    def _is_in_backquotes(self, node: Any) -> bool:
        while node is not None and not (node.type == "command_substitution" and self._text(node).startswith("`")):
            node = node.parent
        return node is not None

    def _compound(self, node: Any, depth: int) -> None:
        if node.type == "redirected_statement":
            self._redirected(node, depth)
            return
        fed = self._fed
        self._fed = fed or any(child.type == ">(" for child in node.children[:1])
        names_words = node.type in ("for_statement", "case_statement", "case_item")
        if node.type == "for_statement":
            name = self._text(node.children[1])
            self.actions.append(Binding(name, ANY, False, f"{name}="))
        for child in node.children:
            if names_words and child.type == "variable_name":
                continue
            if names_words and child.type in _WORDS:
                self._word(child, depth)
            else:
                self._statement(child, depth + 1)
            self._fed = self._fed or child.type in ("|", "|&")
        self._fed = fed

    def _demand_alone(self, node: Any) -> None:
        """A reserved word is reserved only by itself; the grammar also finds it within words."""
        before = self._slice(node.start_byte - 1, node.start_byte) if node.start_byte else ""
        after = self._slice(node.end_byte, node.end_byte + 1)
        if before not in " \t\n;&|(" or after not in (" \t\n;&|)" if node.type in _ENDS else " \t\n"):
            raise Unreadable("it is not certain where its words end", self._text(node.parent))

    def _redirected(self, node: Any, depth: int) -> None:
        """A statement with redirections behind it. The grammar gives a redirection the words that follow it, too."""
        inner, *redirects = node.children
        about = self._text(node)
        at = inner.end_byte
        for child in redirects:
            follows = child.type == "file_redirect" and child.start_byte > at
            if not follows and child.type != "herestring_redirect":
                raise Unreadable("it has a form that is not among the plain ones", about)
            at = child.end_byte
        if inner.type == "command":
            self._command(inner, redirects, depth)
            return
        if inner.type not in _COMMANDS or (
            self._posix and inner.type == "compound_statement" and _ends_in_files(inner)
        ):
            raise Unreadable("it has a form that is not among the plain ones", about)
        begin, fed = len(self.actions), self._fed
        self._fed = fed or self._reads(redirects)
        self._statement(inner, depth + 1)
        self._fed = fed
        commands = self.actions[begin:]
        del self.actions[begin:]
        # The grammar gives a redirection to all of a list, but it is that of the last command.
        calls = [action for action in commands if isinstance(action, SimpleCommand)]
        concerned = calls[-1:] if inner.type in ("list", "pipeline", "negated_command") else calls
        empties = not self._reads(redirects) and any(_prints_nothing(call.argv) for call in concerned)
        # The file is there before the commands run.
        for child in redirects:
            if self._redirect(child, depth, empties):
                raise Unreadable("it has a form that is not among the plain ones", about)
        self.actions += commands

    def _command(self, node: Any, redirects: Sequence[Any], depth: int) -> None:
        """A simple command with its assignments and redirections."""
        self._inside_covered(node, _BLANK)
        self._demand_apart(node.children, self._text(node))
        about = self._slice(node.start_byte, redirects[-1].end_byte if redirects else node.end_byte)
        words: list[Word] = []
        files = []
        for child in node.children:
            if child.type == "variable_assignment":
                if self._text(child) != "IFS=" or self._slice(child.end_byte, node.end_byte).split()[:1] != ["read"]:
                    self._assignment(child, depth, exported=True)
            elif child.type in ("file_redirect", "herestring_redirect"):
                files.append(child)
                words += self._more(child, depth)
            elif child.type == "command_name" and len(child.children) == 1:
                words.append(self._word(child.children[0], depth))
            else:
                printed = self.prints_code
                words.append(self._word(child, depth))
                if len(words) > 2 and words[-2].text == "-c" and words[-3].text in SHELLS:
                    # This word is read as a text of its own.
                    self.prints_code = printed
        for child in redirects:
            words += self._more(child, depth)
        files += redirects
        if words and words[0].text in _NO_PROGRAM:
            raise Unreadable("it is not certain where its commands begin", about)
        # What only reads has nothing to print then.
        is_empty = any(FROM_NULL.match(self._text(file)) for file in files) and starts_nothing(words)
        empties = not self._reads(files) and (is_empty or _prints_nothing(words))
        # What a here-string runs ends before the command begins; what the command prints is in a file only afterwards.
        before = [file for file in files if file.type == "herestring_redirect"]
        for file in before:
            self._redirect(file, depth, empties)
        begin = len(self.actions)
        try:
            for file in files:
                if file not in before:
                    self._redirect(file, depth, empties)
        finally:
            # The command comes before its redirections, and is judged also if one of them can't be read.
            writes = tuple(action for action in self.actions[begin:] if isinstance(action, Write))
            self.actions.insert(begin, SimpleCommand(tuple(words), about, writes, self._fed or self._reads(files)))

    # Redirections.

    def _reads(self, redirects: Sequence[Any]) -> bool:
        """Whether a command gets an input that is not empty from one of these redirections."""
        signs = [self._text(file).lstrip("0123456789") for file in redirects]
        return any(sign.startswith("<") and not FROM_NULL.match(sign) for sign in signs)

    def _parts(self, node: Any) -> tuple[Any, list[Any]]:
        """The sign of a redirection and its words: the file, and the words that the grammar adds."""
        sign, *words = [child for child in node.children if child.type != "file_descriptor"]
        return sign, words

    def _more(self, node: Any, depth: int) -> list[Word]:
        return [self._word(word, depth) for word in self._parts(node)[1][1:]]

    def _redirect(self, node: Any, depth: int, empties: bool) -> bool:
        """What a redirection names; gives whether words follow."""
        about = self._text(node)
        sign, words = self._parts(node)
        self._demand_apart([child for child in node.children if child.type in _WORDS], about)
        self._inside_covered(node, _BLANK)
        first = node.children[0]
        if first.type == "file_descriptor":
            before = self._slice(node.start_byte - 1, node.start_byte)
            if not re.fullmatch(r"[0-9]", self._text(first)) or before not in " \t\n":
                raise Unreadable("it is not certain where it writes or reads", about)
        named = self._word(words[0], depth) if words else Word("-")
        if sign.type == "<" and named.text == MARKER and sign.end_byte == words[0].start_byte:
            self._markers += 1
        elif not self._only_reads(sign.type, named, words):
            if sign.type not in _WRITES:
                raise Unreadable("it is not certain where it writes or reads", about)
            self.actions.append(Write(named, about, empties and sign.type in _OVERWRITES))
        return len(words) > 1

    @staticmethod
    def _only_reads(sign: str, named: Word, words: Sequence[Any]) -> bool:
        if sign == "<":
            is_certain = named.known and (named.text == "/dev/null" or not named.text.startswith("/dev/"))
            return is_certain or words[0].type == "process_substitution"
        if sign in (">&", "<&"):
            return named.fits("[0-9]")
        return sign == "<<<" or (sign in _WRITES and named.known and _STREAMS.fullmatch(named.text) is not None)

    # Words.

    def _word(self, node: Any, depth: int) -> Word:
        """What bash makes of one word, as far as that is known."""
        word = self._plain_word(node, depth)
        return with_marks(word, node.type, self._text(node)) if self._marked else word

    def _plain_word(self, node: Any, depth: int) -> Word:
        self._count(depth)
        kind, text = node.type, self._text(node)
        if kind in _WORD_PATTERNS and not _WORD_PATTERNS[kind].fullmatch(text):
            raise Unreadable("it has a word that cannot be read with certainty", text)
        self.prints_code = self.prints_code or _QUOTED_CODE.get(kind, _ESCAPED_CODE).search(text) is not None
        if kind in ("word", "number"):
            unescaped = re.sub(r"\\.", "", text)
            single = not re.search(r"[*?\[]", unescaped) and not _has_braces(unescaped)
            expanded = _TILDE.sub(rf"\1{HOLE}", text)
            return Word(re.sub(r"\\(.)", r"\1", expanded), single and HOLE not in expanded, single)
        if kind == "raw_string":
            return Word(text[1:-1])
        if kind in ("ansi_c_string", "arithmetic_expansion"):
            return Word(HOLE, known=False)
        if kind in ("simple_expansion", "expansion", "brace_expression", "extglob_pattern", "regex"):
            # A number is one word.
            return ANY._replace(single=text in ("$?", "$#"))
        if kind in ("command_substitution", "process_substitution"):
            self._statement(node, depth + 1)
            return Word(HOLE, known=False, single=kind == "process_substitution")
        if kind == "string":
            return self._string(node, depth)
        if kind == "concatenation":
            return self._concatenation(node, depth)
        if text == "{}":
            return Word(text)
        raise Unreadable("it has a form that is not among the plain ones", text)

    def _concatenation(self, node: Any, depth: int) -> Word:
        text = self._text(node)
        if any(left.end_byte != right.start_byte for left, right in pairwise(node.children)):
            raise Unreadable("it is not certain where its words end", text)
        parts = [self._word(child, depth) for child in node.children]
        # The text of a hole can have a comma, which `shlex.quote` leaves without quotes.
        unquoted = "".join(
            self._text(child) if child.type == "word" else ","
            for child, part in zip(node.children, parts, strict=True)
            if child.type == "word" or part.marks
        )
        plain = not _has_braces(unquoted)
        braces = [self._text(child) in ("{", "}") for child in node.children]
        return Word(
            "".join(part.text for part in parts),
            plain and all(part.known or brace for part, brace in zip(parts, braces, strict=True)),
            plain and all(part.single or brace for part, brace in zip(parts, braces, strict=True)),
            "".join(part.marks for part in parts),
        )

    def _string(self, node: Any, depth: int) -> Word:
        """A text in double quotes. Its literal parts are taken from the source: the grammar leaves out newlines."""
        at, made, single = node.start_byte + 1, "", True
        for child in [*(c for c in node.children if c.type not in ('"', "string_content")), None]:
            piece = self._slice(at, child.start_byte if child else node.end_byte - 1)
            if not _DOUBLE_QUOTED.fullmatch(piece) or (child and child.type not in _IN_STRINGS):
                raise Unreadable("it has a text that cannot be read with certainty", self._text(node))
            made += _ESCAPED.sub(lambda match: match[1].strip("\n"), piece)
            if child:
                spelled = self._text(child)
                if spelled in ("$@", "${@}") or (child.type == "expansion" and "'" in spelled):
                    single = False
                made += self._word(child, depth).text
                at = child.end_byte
        return Word(made, HOLE not in made, single)

    def _assignment(self, node: Any, depth: int, exported: bool = False) -> None:
        about = self._text(node)
        kinds = [child.type for child in node.children]
        plain = kinds[:2] in (["variable_name", "="], ["variable_name", "+="]) and len(kinds) <= 3
        if node.type != "variable_assignment" or not plain:
            raise Unreadable("it is not certain what it sets", about)
        self._inside_covered(node, _NOTHING)
        if not _WORD_PATTERNS["variable_name"].fullmatch(self._text(node.children[0])):
            raise Unreadable("it is not certain what it sets", about)
        value = self._word(node.children[2], depth) if len(kinds) == 3 else Word("")
        self.actions.append(Binding(self._text(node.children[0]), value, exported, about))

    # Tests.

    def _test(self, node: Any, depth: int) -> None:
        """``[ … ]`` or ``[[ … ]]``: only operators that look; in ``[``, no word that could become an operator."""
        first, last = node.children[0], node.children[-1]
        self.prints_code = self.prints_code or not _HARMLESS_ERROR.fullmatch(self._text(node))
        self._demand_alone(first)
        self._demand_alone(last)
        parts = list(self._flat(node, depth))[1:-1]
        if first.type == "[[":
            operators = [part for part in parts if isinstance(part, str)]
            dashes = any(isinstance(part, Word) and part.text.startswith("-") for part in parts)
            if not dashes and all(map(_DOUBLE_BRACKET.fullmatch, operators)):
                return
        elif not {"<", ">"}.intersection(part for part in parts if isinstance(part, str)) and only_looks(
            [Word(part) if isinstance(part, str) else part for part in parts]
        ):
            return
        # What follows is read nevertheless, for the owner's patterns.
        self._unclear = Unclear("it may run what stands in it", self._text(node))

    def _flat(self, node: Any, depth: int) -> Iterator[str | Word]:
        """The operators and words of a test, in order."""
        self._count(depth)
        self._inside_covered(node, _BLANK)
        for child in node.children:
            if child.type in ("unary_expression", "binary_expression", "parenthesized_expression"):
                yield from self._flat(child, depth + 1)
            elif child.type in _WORDS:
                yield self._word(child, depth)
            elif not child.children:
                yield self._text(child)
            else:
                raise Unreadable("it has a form that is not among the plain ones", self._text(child))


def _ends_in_files(node: Any) -> bool:
    """Whether a group ends with a subshell that has redirections: dash forgets these if the group has some, too."""
    last = next((child for child in reversed(node.children) if child.is_named and child.type != "comment"), None)
    if last is None or last.type == "compound_statement":
        return last is not None and _ends_in_files(last)
    return last.type == "redirected_statement" and last.children[0].type in ("subshell", "compound_statement")


def _has_braces(unquoted: str) -> bool:
    """Whether braces may make several words of it. Bash leaves ``{}`` as it is, but reads ``{}a,b}`` as ``}a`` and ``b``."""
    if "," in unquoted or ".." in unquoted:
        return "{" in unquoted
    return "{" in unquoted.replace("{}", "")


def only_looks(words: Sequence[Word]) -> bool:
    """Whether these arguments of `test` or ``[`` only look at files and compare texts."""
    words = list(words)
    while words[:1] == [Word("!")]:
        del words[0]
    if not all(word.single for word in words):
        return False
    texts = [word.text if word.known else "" for word in words]
    if len(texts) == 2:
        return _UNARY.fullmatch(texts[0]) is not None
    return len(texts) == 3 and _BINARY.fullmatch(texts[1]) is not None


def _prints_nothing(words: Sequence[Word]) -> bool:
    """Whether a command prints nothing, so that its redirection only empties the file."""
    if not words or words[0].text in (":", "true"):
        return True
    if words[0].text in _SILENT_WITH:
        return all(re.fullmatch(_SILENT_WITH[words[0].text], word.text) for word in words[1:])
    if starts_nothing(words):
        # `cmp` and `diff` show the other file.
        return Word("/dev/null") in words and words[0].text not in ("cmp", "diff")
    # Also behind a program that runs them, as in `time true > log`.
    return not {":", "true", "/dev/null"}.isdisjoint(word.text for word in words)
