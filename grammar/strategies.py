"""Hypothesis strategies that generate sources. They are public, so an application that extends the language can use them for
fuzzing.

- `sources()` generates texts that the grammar accepts, with every construct. Most of them are not useful programs.
- `texts()` generates any text: sources with removed, duplicated and exchanged parts, deceptive characters, random characters.
- `programs(catalog)` generates complete tools with arguments. The checker accepts them, they terminate, and they call tools of the
  catalogue. CPython with the prelude and the sandbox must give the same result.

Only this module needs Hypothesis.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

_NAMES = ["a", "b", "c", "total", "x1", "_y", "match", "case", "type", "text"]
_NUMBERS = ["0", "1", "42", "0xFF", "0b1_0", "1_000", "2.5", "1e3", ".5", "10.", "True", "False", "None", "..."]
_STRINGS = [
    '""',
    '"a"',
    "'it'",
    "'\"'",
    '"\\n\\x41"',
    'r"\\d+"',
    'b"x"',
    '"""two\nlines"""',
    "'''q'''",
    '"é€😀"',
    '"a" "b"',
    "u'x'",
    "rb'\\x'",
]
_FSTRINGS = [
    'f"{a}"',
    "f'{a!r}'",
    'f"{a:>{b}}"',
    'f"{{}}{a + 1:.2f}"',
    "f'{x1[\"k\"]}'",
    'f"{a}" "b"',
    'rf"\\d{a}"',
    'f"{ a }"',
    'f"{a!s:^{b}.{c}}"',
    'f"{a = }{b + 1=:>{c}}"',
    'f"""{\na}"""',
    'f"{(lambda: 1)()}"',
    'f"{ {1: 2}[1] }"',
]
_BINARY = ["+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "|", "&", "^"]
_COMPARE = ["<", "<=", "==", "!=", ">", ">=", "in", "not in", "is", "is not"]
_AUGMENTED = ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "<<=", ">>=", "|=", "&=", "^=", "@="]

names = st.sampled_from(_NAMES)
_atoms = st.one_of(
    names,
    st.sampled_from(_NUMBERS),
    st.sampled_from(_STRINGS),
    st.sampled_from(_FSTRINGS),
    st.sampled_from(["()", "[]", "{}"]),
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    few = st.lists(inner, max_size=3)
    some = st.lists(inner, min_size=1, max_size=3)

    def joined(pair: tuple[str, list[str], str]) -> str:
        return pair[0] + ", ".join(pair[1]) + pair[2]

    def at(template: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
        return st.tuples(*parts).map(lambda values: template.format(*values))

    starred = st.one_of(inner, inner.map(lambda e: f"*{_operand(e)}"))
    arguments = st.tuples(
        st.lists(starred, max_size=2), st.lists(st.tuples(names, inner), max_size=2, unique_by=lambda p: p[0])
    )
    return st.one_of(
        at("({} {} {})", inner, st.sampled_from(_BINARY), inner),
        at("{} {} {}", inner.map(_operand), st.sampled_from(_BINARY), inner.map(_operand)),
        at("({} {} {} {} {})", inner, st.sampled_from(_COMPARE), inner, st.sampled_from(_COMPARE), inner),
        at("({} {} {})", inner, st.sampled_from(["and", "or"]), inner),
        at("({}{})", st.sampled_from(["-", "+", "~", "not "]), inner),
        at("({} if {} else {})", inner, inner, inner),
        at("({} := {})", names, inner),
        at("(lambda: {})", inner),
        at("(lambda {}, {}=1: {})", st.just("a"), st.just("b"), inner),
        at("{}.{}", inner.map(_operand), names),
        at("{}[{}]", inner.map(_operand), inner),
        at("{}[{}:{}]", inner.map(_operand), inner, inner),
        at("{}[::{}, {}:]", inner.map(_operand), inner, inner),
        st.tuples(st.just("["), few, st.sampled_from(["]", ",\n  ]"]))
        .filter(lambda t: bool(t[1]) or t[2] == "]")
        .map(joined),
        st.tuples(st.just("{"), some, st.just("}")).map(joined),
        st.tuples(st.just("("), some, st.just(",)")).map(joined),
        st.lists(st.tuples(inner, inner), max_size=2).map(lambda ps: "{" + ", ".join(f"{k}: {v}" for k, v in ps) + "}"),
        at("{{**{}, {}: {}}}", inner.map(_operand), inner, inner),
        at("[{} for {} in {}]", inner, names, inner),
        at("[{} for {} in {} if {} for {} in {}]", inner, names, inner, inner, names, inner),
        at("{{{} for {}, *{} in {}}}", inner, names, names, inner),
        at("{{{}: {} for {} in {}}}", inner, inner, names, inner),
        at("({} for {} in {})", inner, names, inner),
        st.tuples(inner.map(_operand), arguments).map(_call),
        at("{}({} for {} in {})", names, inner, names, inner),
        at("tools.{}({}={})", names, names, inner),
    )


def _operand(text: str) -> str:
    return text if text.isidentifier() or (text[:1] in "([{" and _closed(text)) else f"({text})"


def _closed(text: str) -> bool:
    """Whether the first bracket is closed at the very end. Brackets in strings count, too. At worst, this adds brackets."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0:
            return i == len(text) - 1
    return False


def _call(parts: tuple[str, tuple[list[str], list[tuple[str, str]]]]) -> str:
    function, (args, keywords) = parts
    return f"{function}({', '.join([*args, *(f'{k}={v}' for k, v in keywords)])})"


@st.composite
def _expression(draw: Draw, depth: int) -> str:
    # `st.recursive` is not used, because its description would grow with every part.
    return str(draw(_levels(depth)))


@cache
def _levels(depth: int) -> st.SearchStrategy[str]:
    return st.one_of(_atoms, _grown(_expression(depth - 1))) if depth else _atoms


#: Expressions of all kinds.
expressions: st.SearchStrategy[str] = _expression(2)

_patterns: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(["_", "n", "1", "-2.5", "'s'", "None", "True", "str()", "int()", "a.b"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda ps: f"[{', '.join(ps)}]"),
        inner.map(lambda p: f"[{p}, *rest]"),
        inner.map(lambda p: f"{{'k': {p}, **others}}"),
        inner.map(lambda p: f"({p}) as whole"),
    ),
    max_leaves=3,
)

_comments = st.sampled_from(["", "", "", "  # why", "  # é 'quote\""])


@st.composite
def _block(draw: Draw, depth: int, indent: str, loop: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3 if depth else 2))):
        if draw(st.booleans()) and draw(st.booleans()):
            lines.append(f"{indent}# a comment")
        lines += draw(_statement(depth, indent, loop))
    return lines


@st.composite
def _statement(draw: Draw, depth: int, indent: str, loop: bool) -> list[str]:
    def e() -> str:
        return str(draw(expressions))

    step = indent + draw(st.sampled_from(["    ", "  "]))

    def inner(in_loop: bool = loop) -> list[str]:
        return list(draw(_block(depth - 1, step, in_loop)))

    kinds = "expr assign unpack annotated augmented item del pass return raise assert semicolons".split()
    if loop:
        kinds += ["break", "continue"]
    if depth:
        kinds += ["if", "for", "try", "finally", "match", "if", "for"]
    comment = draw(_comments)
    match draw(st.sampled_from(kinds)):
        case "expr":
            return [f"{indent}{e()}{comment}"]
        case "assign":
            return [f"{indent}{draw(names)} = {draw(names)} = {e()}{comment}"]
        case "unpack":
            return [f"{indent}{draw(names)}, (*{draw(names)}, {draw(names)}) = {e()}, {e()}"]
        case "annotated":
            return [f"{indent}{draw(names)}: int = {e()}"]
        case "augmented":
            return [f"{indent}{draw(names)} {draw(st.sampled_from(_AUGMENTED))} {e()}"]
        case "item":
            return [f"{indent}{draw(names)}[{e()}] = {e()}"]
        case "del":
            return [f"{indent}del {draw(names)}[{e()}]{comment}"]
        case "pass":
            return [f"{indent}pass{comment}"]
        case "return":
            return [
                f"{indent}return {draw(st.sampled_from(['', '*a, ']))}{e()}"
                if draw(st.booleans())
                else f"{indent}return"
            ]
        case "raise":
            return [f"{indent}raise {e()} from {e()}" if draw(st.booleans()) else f"{indent}raise {e()}"]
        case "assert":
            return [f"{indent}assert {e()}, {e()}"]
        case "semicolons":
            return [f"{indent}pass; {draw(names)} = {e()};{comment}"]
        case "break" | "continue" as word:
            return [f"{indent}{word}"]
        case "if":
            lines = [f"{indent}if {e()}:{comment}", *inner()]
            if draw(st.booleans()):
                lines += [f"{indent}elif {e()}:", *inner()]
            if draw(st.booleans()):
                lines += [f"{indent}else:", *inner()]
            return lines
        case "for":
            lines = [f"{indent}for {draw(names)}, {draw(names)} in {e()}:", *inner(True)]
            return [*lines, f"{indent}else:", *inner()] if draw(st.booleans()) else lines
        case "try":
            lines = [f"{indent}try:", *inner(), f"{indent}except (KeyError, ToolError) as error:", *inner()]
            if draw(st.booleans()):
                lines += [f"{indent}except ValueError:", *inner(), f"{indent}else:", *inner()]
            return lines
        case "finally":
            return [f"{indent}try:", *inner(), f"{indent}finally:{comment}", *inner(False)]
        case "match":
            lines = [f"{indent}match {e()}:"]
            for _ in range(draw(st.integers(1, 2))):
                guard = f" if {e()}" if draw(st.booleans()) else ""
                lines += [f"{step}case {draw(_patterns)}{guard}:", *draw(_block(depth - 1, step + "  ", loop))]
            return lines
    raise AssertionError


@st.composite
def sources(draw: Draw, max_depth: int = 2) -> str:
    """A text that the grammar accepts: imports, constants, a TypedDict, functions with decorators, and every statement."""
    lines: list[str] = []
    if draw(st.booleans()):
        lines += ["import json, re as r", "from math import sqrt as root"]
    if draw(st.booleans()):
        lines.append(f"LIMIT = {draw(expressions)}")
    if draw(st.booleans()):
        lines += ["class Row(TypedDict, total=False):", '    """A row."""', "    name: str", "    n: int | None"]
    for name in draw(st.lists(st.sampled_from(["f", "_g", "h"]), min_size=1, max_size=2, unique=True)):
        if draw(st.booleans()):
            lines += [f"@tool(timeout={draw(expressions)})", "# between"]
        head = draw(
            st.sampled_from(["()", "(a)", "(a, b=1)", "(a: str, *, b: list[int] = [], c=None)", "(\n    a,  # it\n)"])
        )
        returns = draw(st.sampled_from(["", " -> dict[str, int] | None"]))
        lines += [f"def {name}{head}{returns}:", *draw(_block(max_depth, "    ", False))]
        lines += [""] * draw(st.integers(0, 3))
    return "\n".join(lines) + str(draw(st.sampled_from(["\n", "", "\n# end\n"])))


_JUNK = [*"\t\0\r\u202e\u200b\ufeffℋé`$?\"'\\{(]", "  ", "\n", ":"]
_WORDS = """while class yield async await with global lambda import exec __class__ eval except*""".split()


@st.composite
def texts(draw: Draw) -> str | bytes:
    """Any input: a source with removed, duplicated, exchanged or replaced parts, or random characters."""
    if draw(st.booleans()) and draw(st.booleans()):
        junk: str | bytes = draw(st.one_of(st.text(max_size=200), st.binary(max_size=200)))
        return junk
    text = str(draw(sources(max_depth=1)))
    for _ in range(draw(st.integers(1, 4))):
        i, j = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        match draw(st.sampled_from(["cut", "double", "junk", "word", "swap"])):
            case "cut":
                text = text[:i] + text[min(j, i + 12) :]
            case "double":
                text = text[:j] + text[i : i + 40] + text[j:]
            case "junk":
                text = text[:i] + draw(st.sampled_from(_JUNK)) + text[i:]
            case "word":
                text = text[:i] + f" {draw(st.sampled_from(_WORDS))} " + text[i:]
            case "swap":
                text = text[:i] + text[j : j + 12] + text[i:j] + text[j + 12 :]
    return text


# Whole programs.


class ToolNames(Protocol):
    """The part of a catalogue that `programs` needs: names, and parameters with `name`, `schema` and `required`."""

    def names(self) -> Iterable[str]:
        """The names of the tools that programs may call."""

    def get(self, name: str) -> Any:
        """The definition of one tool."""


@dataclass(frozen=True, slots=True)
class Program:
    """A tool named ``t``, and the arguments for a call of it."""

    source: str
    arguments: dict[str, Any]


class _Scope:
    """The variables in scope, by type. Expressions are generated by type, so that most of a program is meaningful."""

    def __init__(self, variables: dict[str, list[str]]) -> None:
        self.variables = variables
        self.count = 0

    def inner(self) -> _Scope:
        scope = _Scope({kind: list(found) for kind, found in self.variables.items()})
        scope.count = self.count + 100
        return scope

    def new(self, kind: str) -> str:
        self.count += 1
        name = f"{kind[0]}{self.count}"
        self.variables.setdefault(kind, []).append(name)
        return name


_TYPES = ["int", "str", "list", "dict", "bool"]


@st.composite
def programs(draw: Draw, catalog: ToolNames) -> Program:
    """A tool with arguments. The checker accepts the tool, and it terminates.

    The tool contains arithmetic that may fail, text, lists, dicts, finite loops, lists that grow, names that may have no value,
    lazy values, handlers, exceptions that are raised later, helpers, `match`, f-strings, `parallel`, and tool calls with and
    without a handler.
    """
    return _Writer(
        draw, catalog, [name for name in catalog.names() if _can_be_called(name, catalog.get(name))]
    ).program()


#: The most saved tools that call each other, as the checker allows. A generated tool adds one.
_MAX_DEPTH = 8


def _can_be_called(name: str, definition: Any) -> bool:
    """Whether a program named ``t`` can call a tool with literal arguments."""
    words = [*name.split("."), *(p.name for p in definition.parameters if p.required)]
    return name != "t" and all(map(_is_name, words)) and getattr(definition, "depth", 0) < _MAX_DEPTH


def _is_name(word: str) -> bool:
    return word.isidentifier() and word.isascii() and not keyword.iskeyword(word) and not word.startswith("_")


@cache
def _up_to(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class _Writer:
    def __init__(self, draw: Draw, catalog: ToolNames, tools: list[str]) -> None:
        self.draw = draw
        self.catalog = catalog
        self.tools = tools
        self.names = 0

    def once(self) -> str:
        """A name that the program binds only once."""
        self.names += 1
        return f"only{self.names}"

    def pick(self, options: list[Any]) -> Any:
        # The option is selected by its index. A strategy for a range is created once, but one for a list is created at each call.
        return options[self.draw(_up_to(len(options)))]

    def chance(self, of: int = 2) -> bool:
        return bool(self.draw(_up_to(of)) == 1)

    def program(self) -> Program:
        helper = _Scope({"int": ["n"], "str": ["s"]})
        lines = ["import json", "", "", "def _help(n: int, s: str) -> str:", '    """Help."""']
        lines += self.block(helper, "    ", 1, False)
        lines += [f"    return {self.expr(helper, 'str', 2)}", "", ""]
        scope = _Scope({"int": ["n"], "str": ["s"], "list": ["xs"], "dict": ["d"]})
        lines += [
            "def t(n: int, s: str, xs: list[int], d: dict[str, int]) -> Any:",
            '    """Do something."""',
            "    out = []",
        ]
        lines += self.block(scope, "    ", 2, True)
        kinds = [self.pick(_TYPES) for _ in range(2)]
        lines.append(f"    return [out, {', '.join(self.expr(scope, k, 2) for k in kinds)}]")
        arguments = {
            "n": self.draw(st.integers(-3, 9)),
            "s": self.draw(st.sampled_from(["", "a", "Hello, World", "3", "äöü", "a b c"])),
            "xs": self.draw(st.lists(st.integers(-5, 20), max_size=5)),
            "d": self.draw(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(-5, 5), max_size=3)),
        }
        return Program("\n".join(lines) + "\n", arguments)

    # Statements.

    def block(self, scope: _Scope, indent: str, depth: int, top: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 2 + depth))):
            lines += self.statement(scope, indent, depth, top)
        return lines

    def statement(self, scope: _Scope, indent: str, depth: int, top: bool) -> list[str]:
        kinds = ["assign", "assign", "print", "assign", "lazy", "raise"]
        if self.tools:
            kinds.append("call")
        if top:
            # A helper that `parallel` can reach must not change its arguments.
            kinds += ["out", "out", "augment", "grow"]
            kinds += ["parallel"] if self.tools else []
        if depth:
            kinds += ["if", "for", "try", "match", "unpack", "maybe"]
        step = indent + "    "
        match self.pick(kinds):
            case "assign":
                kind = self.pick(_TYPES)
                value = self.expr(scope, kind, 2)
                return [f"{indent}{scope.new(kind)} = {value}"]
            case "augment":
                name = self.pick(scope.variables["int"])
                return [f"{indent}{name} {self.pick(['+=', '-=', '//=', '%='])} {self.expr(scope, 'int', 1)}"]
            case "print":
                return [f"{indent}print({self.expr(scope, self.pick(_TYPES), 1)}, {self.expr(scope, 'str', 0)})"]
            case "out":
                return [f"{indent}out.append({self.expr(scope, self.pick(_TYPES), 2)})"]
            case "call":
                call = self.tool_call(scope)
                name = scope.new("any")
                if self.chance(3):
                    return [f"{indent}{name} = {call}"]
                caught = f"{indent}except ToolError as error:"
                return [
                    f"{indent}try:",
                    f"{step}{name} = {call}",
                    caught,
                    f"{step}{name} = error.code + error.message",
                    *([f"{indent}finally:", f'{step}print("done")'] if self.chance(3) else []),
                ]
            case "parallel":
                name = scope.new("any")
                if self.chance():
                    body = scope.inner()
                    body.variables = {**body.variables, "int": ["i"]}
                    work = self.pick([self.tool_call(body), f"_help(i, {self.expr(body, 'str', 0)})"])
                    found = f"parallel({work} for i in {self.expr(scope, 'list', 1)})"
                else:
                    found = f"parallel({self.tool_call(scope)}, {self.expr(scope, 'int', 1)})"
                return [f"{indent}{name} = {found}", f"{indent}out.append({name})"]
            case "maybe":
                inner = scope.inner()
                kind, name = self.pick(_TYPES), self.once()
                value = self.expr(inner, kind, 1)
                head = self.pick([f"if {self.expr(scope, 'bool', 1)}", f"for x in {self.expr(scope, 'list', 1)}"])
                lines = [f"{indent}{head}:", f"{step}{name} = {value}"]
                if self.chance(4):
                    return [*lines, f"{indent}print({name})"]
                after = [f"{indent}except Exception as error:", f"{step}print(error)"]
                return [*lines, f"{indent}try:", f"{step}print({name})", *after]
            case "grow":
                name, variable = self.pick(scope.variables["list"]), self.once()
                grown = f"{step}    {name}.append({variable} + {self.expr(scope, 'int', 1)})"
                return [f"{indent}for {variable} in {name}:", f"{step}if len({name}) < 9:", grown]
            case "lazy":
                name, value = self.once(), self.expr(scope, "list", 1)
                made = self.pick([f"(x + 1 for x in {value} if x)", f"map(abs, {value})", f"enumerate({value})"])
                between = f"{indent}print({self.expr(scope, 'int', 1)})"
                return [f"{indent}{name} = {made}", between, f"{indent}for x in {name}:", f"{step}print(x)"]
            case "raise":
                name = self.once()
                lines = [f"{indent}{name} = None", f"{indent}try:", f"{step}print({self.expr(scope, 'int', 2)})"]
                lines += [f"{indent}except Exception as error:", f"{step}{name} = error"]
                lines += [f"{indent}if {name}:", f"{step}raise {name}"]
                if self.chance(4):
                    return lines
                lines[-2:] = [
                    f"{indent}try:",
                    f"{step}raise {name} or NotImplementedError({self.expr(scope, 'str', 0)})",
                ]
                return [*lines, f"{indent}except Exception as error:", f"{step}print(error, error.args)"]
            case "if":
                lines = [f"{indent}if {self.expr(scope, 'bool', 1)}:", *self.block(scope.inner(), step, depth - 1, top)]
                if self.chance():
                    lines += [f"{indent}else:", *self.block(scope.inner(), step, depth - 1, top)]
                return lines
            case "for":
                inner = scope.inner()
                value = self.expr(scope, "list", 1)
                variable = inner.new("int")
                lines = [f"{indent}for {variable} in {value}:", *self.block(inner, step, depth - 1, top)]
                if self.chance(3):
                    lines += [
                        f"{step}if {self.expr(inner, 'bool', 0)}:",
                        f"{step}    {self.pick(['break', 'continue'])}",
                    ]
                    lines += [f"{step}print({variable})"]
                if self.chance(3):
                    lines += [f"{indent}else:", f'{step}print("all")']
                return lines
            case "try":
                error = self.pick(
                    ["ZeroDivisionError", "(KeyError, IndexError)", "ValueError", "Exception", "ToolError"]
                )
                lines = [f"{indent}try:", *self.block(scope.inner(), step, depth - 1, top), f"{indent}except {error}:"]
                lines += [f'{step}print("caught")']
                if self.chance():
                    lines += [f"{indent}finally:", f'{step}print("finally")']
                return lines
            case "match":
                inner = scope.inner()
                lines = [f"{indent}match {self.expr(scope, self.pick(_TYPES), 1)}:"]
                pattern = self.pick(["0 | 1", "[first, *rest]", '{"a": found}', "str() as word", "True", '"a"'])
                lines += [f"{step}case {pattern}:", *self.block(inner, step + "    ", depth - 1, top)]
                return [*lines, f"{step}case _:", f'{step}    print("other")']
            case "unpack":
                value = self.expr(scope, "list", 1)
                return [f"{indent}{scope.new('int')}, *{scope.new('list')} = {value}"]
        raise AssertionError

    def tool_call(self, scope: _Scope) -> str:
        name = self.pick(self.tools)
        arguments = []
        for p in self.catalog.get(name).parameters:
            if p.required or (_is_name(p.name) and self.chance(3)):
                kind = {"string": "str", "integer": "int", "boolean": "bool", "array": "list", "object": "dict"}.get(
                    str(p.schema.get("type")), "str"
                )
                value = self.expr(scope, kind, 1)
                # The checker checks a literal against the parameter's schema, but this module does not read the schema.
                arguments.append(f"{p.name}={kind}({value})" if _literal(value) else f"{p.name}={value}")
        return f"tools.{name}({', '.join(arguments)})"

    # Expressions, by type.

    def expr(self, scope: _Scope, kind: str, depth: int) -> str:
        if depth <= 0 or self.chance(4):
            known = scope.variables.get(kind)
            if known and not self.chance(4):
                return str(self.pick(known))
            return str(self.pick(_LITERALS[kind]))

        def e(kind: str) -> str:
            return self.expr(scope, kind, depth - 1)

        match kind:
            case "int":
                options: list[Callable[[], str]] = [
                    lambda: f"({e('int')} {self.pick(['+', '-', '//', '%', '&', '|', '^'])} {e('int')})",
                    # The factor is a constant, so a loop can't square a number repeatedly.
                    lambda: f"({e('int')} * {self.pick(['2', '-3', '10'])})",
                    lambda: f"len({e(self.pick(['str', 'list', 'dict']))})",
                    lambda: f"sum({e('list')})",
                    lambda: f"int({e('str')})",
                    lambda: f"{e('list')}[{e('int')}]",
                    lambda: f"{e('dict')}.get({e('str')}, {e('int')})",
                    lambda: f"{e('dict')}[{e('str')}]",
                    lambda: f"max({e('list')}, default={e('int')})",
                    lambda: f"({e('int')} if {e('bool')} else {e('int')})",
                    lambda: f"abs({e('int')})",
                    lambda: f"divmod({e('int')}, {e('int')})[0]",
                ]
            case "str":
                options = [
                    lambda: f"({e('str')} + {e('str')})",
                    lambda: f"{e('str')}.{self.pick(['upper', 'strip', 'title', 'lower', 'swapcase'])}()",
                    lambda: f'f"{{{self.pick(scope.variables["int"])}:>4}}|{{{self.pick(scope.variables["str"])}!r}}"',
                    lambda: f"str({e(self.pick(['int', 'list', 'bool', 'dict']))})",
                    lambda: f"{e('str')}[{e('int')}:]",
                    lambda: f'",".join(str(x) for x in {e("list")})',
                    lambda: f"{e('str')}.replace({e('str')}, {e('str')})",
                    lambda: f"json.dumps({e(self.pick(['int', 'list', 'dict', 'str']))})",
                ]
            case "list":
                options = [
                    lambda: f"[x * {e('int')} for x in {e('list')} if x > {e('int')}]",
                    lambda: f"sorted({e('list')}, key=lambda x: -x)",
                    lambda: f"list(range({e('int')} % 7))",
                    lambda: f"({e('list')} + {e('list')})",
                    lambda: f"{e('list')}[{e('int')}:{e('int')}]",
                    lambda: f"[{e('int')}, {e('int')}]",
                    lambda: f"[len(w) for w in {e('str')}.split()]",
                    lambda: f"list({e('dict')}.values())",
                    lambda: f"list(map(abs, {e('list')}))",
                    lambda: f"list({{{', '.join(str(self.pick(_SET_ITEMS)) for _ in range(4))}}})",
                ]
            case "dict":
                options = [
                    lambda: f"{{{e('str')}: {e('int')}, {e('str')}: {e('int')}}}",
                    lambda: f"{{str(x): x for x in {e('list')}}}",
                    lambda: f"{{**{e('dict')}, {e('str')}: {e('int')}}}",
                    lambda: f"dict(zip({e('str')}, {e('list')}))",
                ]
            case _:
                options = [
                    lambda: f"({e('int')} {self.pick(['<', '==', '>=', '!='])} {e('int')})",
                    lambda: f"({e('str')} in {e('str')})",
                    lambda: f"(not {e('bool')})",
                    lambda: f"({e('bool')} {self.pick(['and', 'or'])} {e('bool')})",
                    lambda: (
                        f"isinstance({e(self.pick(['int', 'str', 'list']))}, {self.pick(['int', 'str', '(list, dict)'])})"
                    ),
                    lambda: f"any(x > {e('int')} for x in {e('list')})",
                    lambda: f"(0 <= {e('int')} < {e('int')})",
                ]
        return str(self.pick(options)())


def _literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, TypeError):
        return False
    return True


#: Some have the same place in a hash table.
_SET_ITEMS = [0, 8, 16, 24, -36, 17, 9, 41]
_LITERALS = {
    "int": ["0", "1", "-1", "7", "255", "1000000007"],
    "str": ['""', '"a"', '"b c"', "'it'", '"7"', '"ß"', '"a,b"'],
    "list": ["[]", "[1]", "[3, 1, 2]", "[0, -1]"],
    "dict": ["{}", '{"a": 1}', '{"b": 2, "a": 3}'],
    "bool": ["True", "False"],
    "any": ["None"],
}
