"""The grammar: the texts that it accepts, the texts that it refuses, and that no input raises an exception."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.grammar.parse import parse, parse_or_raise
from albert_tools.grammar.python_parser import parse_python
from albert_tools.grammar.second_reading import different_line, disagreement, twins
from albert_tools.grammar.source_text import MAX_SOURCE_BYTES
from albert_tools.grammar.unsupported import CONSTRUCTS
from tests.helpers.effort import examples

EVERY_FORM = (Path(__file__).parent / "every_form.tool").read_text(encoding="utf-8")


def codes(source: str | bytes) -> list[str]:
    return [d.code for d in parse(source).diagnostics]


def test_every_form_has_the_same_tree_as_in_python() -> None:
    module = parse_or_raise(EVERY_FORM)
    assert different_line(module, parse_python(EVERY_FORM)) is None


def test_every_statement_and_expression_has_one_twin() -> None:
    theirs = parse_python(EVERY_FORM)
    found = [b for a, b in twins(parse_or_raise(EVERY_FORM), theirs) if isinstance(b, ast.stmt | ast.expr)]
    # An f-string's texts are no expressions of the source.
    texts = {
        id(v) for n in ast.walk(theirs) if isinstance(n, ast.JoinedStr) for v in n.values if type(v) is ast.Constant
    }
    texts |= {id(n.format_spec) for n in ast.walk(theirs) if isinstance(n, ast.FormattedValue)}
    wanted = [n for n in ast.walk(theirs) if isinstance(n, ast.stmt | ast.expr) and id(n) not in texts]
    assert {id(n) for n in found} == {id(n) for n in wanted}
    assert len(found) == len(wanted)


def test_a_twin_is_at_the_place_of_its_node() -> None:
    for a, b in twins(parse_or_raise(EVERY_FORM), parse_python(EVERY_FORM)):
        if isinstance(b, ast.stmt) and not isinstance(b, ast.FunctionDef | ast.ClassDef):
            assert (a.span.line, a.span.column) == (b.lineno, b.col_offset + 1)


def test_the_second_reading_finds_every_change() -> None:
    module, theirs = parse_or_raise(EVERY_FORM), parse_python(EVERY_FORM)
    for node in ast.walk(theirs):
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, ast.arguments):
                continue  # its own fields are changed
            changes: list[object] = [[*value, ast.arg("z")], value[:-1]] if isinstance(value, list) else [ast.arg("z")]
            for change in changes:
                if change != value and name not in ("ctx", "kind", "simple", "type_comment", "type_ignores"):
                    setattr(node, name, change)
                    assert different_line(module, theirs) is not None, (ast.dump(node), name)
            setattr(node, name, value)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("x = 1", "x = True"),
        ("x = 1", "x = 1.0"),
        ("x = 0.0", "x = -0.0"),
        ("x = 'a'", "x = b'a'"),
        ("f(a)", "f(*a)"),
        ("f(**a)", "f(a=a)"),
        ("{**a}", "{None: a}"),
        ("a < b <= c", "a <= b < c"),
        ("-a", "+a"),
        ("a and b or c", "a and (b or c)"),
        ("a ** b ** c", "(a ** b) ** c"),
        ("f'{a}'", "f'{a!r}'"),
        ("f'{a}'", "f'{a:}'"),
        ("f'{a:x}'", "f'{a:{x}}'"),
        ("f'a{b}'", "f'{b}a'"),
        ("lambda a, b=1: a", "lambda a=1, b=1: a"),
        ("def f(a, *, b): pass", "def f(a, b): pass"),
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
        ("def f(a: b, c): pass", "def f(a, c: b): pass"),
        ("import a", "import a as a"),
        ("x[a:]", "x[:a]"),
    ],
)
def test_programs_with_different_meanings_have_different_trees(ours: str, theirs: str) -> None:
    assert different_line(parse_or_raise(ours), parse_python(theirs)) == 1


def test_a_span_covers_the_text_of_its_node() -> None:
    module = parse_or_raise('x = 1\ny = f"a{name!r}b"\n')
    second = module.body[1]
    field = second.value.pieces[0].parts[1].value  # type: ignore[union-attr]
    line, column, _, end = field.span
    assert module.source.split("\n")[line - 1][column - 1 : end - 1] == "name"


def test_a_text_that_cpython_parses_differently_is_refused() -> None:
    module = parse_or_raise("x = 1\n")
    found = disagreement(module, parse_python("x = 2\n"))
    assert found is not None
    assert found.code == "readings-differ"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("async def f(): pass", "no-async"),
        ("def f():\n    yield 1\n", "no-yield"),
        ("def f():\n    yield from x\n", "no-yield"),
        ("with a as b: pass", "no-with"),
        ("def f():\n    global x\n", "no-global"),
        ("def f(*args): pass", "no-star-parameter"),
        ("def f(**options): pass", "no-star-parameter"),
        ("def f(a, /): pass", "no-positional-only"),
        ("from json import *", "no-star-import"),
        ("from . import x", "unknown-module"),
        ("x = 1j", "no-complex"),
        ("a.b: int = 1", "no-annotated-target"),
        ("try: pass\nexcept* ValueError: pass", "no-except-star"),
        ("match x:\n    case P(a): pass\n", "no-class-pattern"),
        ("x = [y async for y in z]", "no-async"),
    ],
)
def test_python_outside_the_language_gets_a_rewrite(source: str, code: str) -> None:
    found = parse(source)
    assert found.module is None
    assert code in [d.code for d in found.diagnostics]
    assert all(d.hint for d in found.diagnostics)


def test_all_constructs_outside_the_language_are_reported() -> None:
    assert codes("with x:\n    async with y: pass\n") == ["no-with", "no-async"]
    assert len({code for code, _, _ in CONSTRUCTS.values()}) > 5


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("x = (1,\n", "syntax"),
        ("1 = 2", "syntax"),
        ("f(a=1, a=2)", "syntax"),
        ("f(a=1, 2)", "syntax"),
        ("x = 'abc", "unterminated-string"),
        ("x = '''abc\n", "unterminated-string"),
        ("x = '\x00'", "bad-character"),
        ("x = 'a\u202eb'", "bad-character"),
        ("if x:\n\ty = 1\n", "tab"),
        ("__cl\u1d43ss__ = 1", "non-ascii-name"),
        (b"\xff\xfe", "not-text"),
        ("x = '\ud800'", "not-text"),
        ("(" * 60 + ")" * 60, "nesting-too-deep"),
        ("x = " + "-" * 5000 + "1", "nesting-too-deep"),
        ("x = " + "1 + " * 5000 + "1", "nesting-too-deep"),
        ("x = " + "1" * 500, "literal-too-long"),
        ("x = '" + "a" * 70_000 + "'", "literal-too-long"),
        ("a = 1\n" * 200_000, "source-too-large"),
        (b"a" * 10_000_000, "source-too-large"),
        ("f'{a=b}'", "syntax"),
        ("f'{a\\n}'", "syntax"),
        ("f'{}'", "syntax"),
        ("f'}'", "syntax"),
        ("f'{a'", "syntax"),
        ("x = 'a' b'b'", "syntax"),
        ("case = 1\ncase x: pass", "syntax"),
        ("[*a or b]", "syntax"),
        ("{**not a}", "syntax"),
        ("a + not b", "syntax"),
        ("a < not b", "syntax"),
        ("for a + b in c: pass", "syntax"),
    ],
)
def test_a_bad_text_is_refused_with_its_code(source: str | bytes, code: str) -> None:
    assert codes(source) == [code]


@pytest.mark.parametrize("name", ["match", "case", "_", "type"])
def test_soft_keywords_are_names_elsewhere(name: str) -> None:
    parse_or_raise(f"{name} = [1]\n{name}[0] = {name}\nf({name}={name})\nx.{name}({name})\n")


def test_operators_have_the_precedence_of_python() -> None:
    parse_or_raise("x = -a ** -b ** c * d + e << f & g ^ h | i < j in k is not l not in m\n")
    parse_or_raise("x = not a or not b and not not c == d if e else [*(a or b), *a | b]\n")
    parse_or_raise("x = (a and b) and c, a and (b and c), (a < b) < c, a - (b - c), (a ** b) ** c, a is (not b)\n")
    parse_or_raise("del (a[0], b[0]), c[0],\n")


def test_layout_follows_python() -> None:
    parse_or_raise("if a:\n    b = [\n  1,  # one\n]\n\n# note\n    c = 2\nelse: d = 1; e = 2\n")
    parse_or_raise("x = 1 + \\\n    2\r\ny = 3\r")
    assert codes("if a:\n    b = 1\n  c = 2\n") == ["syntax"]


def test_the_size_limit() -> None:
    [found] = parse("#" * MAX_SOURCE_BYTES + "\n").diagnostics
    assert (found.code, found.message) == (
        "source-too-large",
        "the source has 131,073 bytes; at most 131,072 are allowed",
    )
    assert parse("#" * (MAX_SOURCE_BYTES - 1) + "\n").module is not None


@examples(100)
@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_no_input_makes_it_raise(source: str | bytes) -> None:
    found = parse(source)
    assert (found.module is None) == bool(found.diagnostics)


_WORDS = "x 1 's' f'{a}' ( ) [ ] { } : , = == := if else for in not lambda def return match case + ** * . #c"
_SNIPPETS = [*_WORDS.split(), "\n", "    "]


@examples(100)
@given(st.lists(st.sampled_from(_SNIPPETS), max_size=25).map(" ".join))
def test_random_tokens_are_never_parsed_differently_from_python(source: str) -> None:
    assert "readings-differ" not in codes(source)
