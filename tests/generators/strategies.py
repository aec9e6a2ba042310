"""Hypothesis strategies that generate sources. They are public, so an application that extends the language can use them for
fuzzing.

- `sources()` generates texts that the grammar accepts, with every construct. Most of them are not useful programs.
- `texts()` generates any text: sources with removed, duplicated and exchanged parts, deceptive characters, random characters.
- `programs(catalog)` generates complete tools with arguments. The checker accepts them, they terminate, and they call tools of the
  catalogue. CPython with the prelude and the sandbox must give the same result.
- `mutants(catalog)` generates such tools with one mistake (`grammar.mutants`).

Only this module needs Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.generators.generated_programs import Program, ToolNames, program
from tests.generators.mutants import mutant

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


@cache
def _up_to(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class Drawn:
    """Choices that Hypothesis makes, so it also makes them smaller."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def below(self, count: int) -> int:
        """A number of Hypothesis."""
        # A strategy for a range is created once, but one for a list of options would be created at each call.
        return int(self._draw(_up_to(count)))


@st.composite
def programs(draw: Draw, catalog: ToolNames) -> Program:
    """A tool named ``t`` with arguments (`generated_programs`)."""
    return program(Drawn(draw), catalog)


@st.composite
def mutants(draw: Draw, catalog: ToolNames) -> Program:
    """A tool with one mistake, and arguments. The checker may accept it, and it may not terminate."""
    choices = Drawn(draw)
    made = program(choices, catalog)
    return Program(mutant(choices, made.source), made.arguments)
