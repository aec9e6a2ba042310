"""The formatter keeps the tree and the comments of a text. Formatting its output again changes nothing."""

from __future__ import annotations

import ast
import io
import itertools
import json.encoder
import posixpath
import shlex
import statistics
import textwrap
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.grammar.parse import parse
from albert_tools.grammar.source_error import SourceError
from albert_tools.grammar.unparse import format_source
from tests.helpers.effort import examples
from tests.helpers.formatting import assert_formats

HERE = Path(__file__).parent
EXAMPLES = sorted((HERE.parents[1] / "examples" / "tools").glob("*.tool"))


@pytest.mark.parametrize("path", [HERE / "every_form.tool", *EXAMPLES], ids=lambda path: path.stem)
def test_tools_are_formatted(path: Path) -> None:
    assert_formats(path.read_text())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_canonical(path: Path) -> None:
    assert format_source(path.read_text()) == path.read_text()


@pytest.mark.parametrize("module", [json.encoder, posixpath, shlex, statistics, textwrap], ids=lambda m: m.__name__)
def test_functions_of_the_standard_library_are_formatted(module: object) -> None:
    source = Path(str(module.__file__)).read_text()  # type: ignore[attr-defined]
    lines = source.split("\n")
    formatted = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            text = textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))
            if parse(text).module is not None:
                assert_formats(text)
                formatted += 1
    assert formatted > 3


CASES = {
    "comments keep their places": (
        """
        # before
        def f(a, # first
              b): # head
            # in the block
            if a:   # why
                x = [ # open
                    1, # one
                    # two is next
                    2,
                    # last
                ]
                # end of the block
            # before else
            else: # other
                pass
            return (a + # inside
                    b)
        # the end
        """,
        """
        # before
        def f(
            a,  # first
            b,
        ):  # head
            # in the block
            if a:  # why
                x = [
                    # open
                    1,  # one
                    # two is next
                    2,
                    # last
                ]
                # end of the block
            # before else
            else:  # other
                pass
            # inside
            return a + b
        # the end
        """,
    ),
    "comments stay with the clauses of a comprehension": (
        """
        def f(a):
            return [x # each
                # of all
                for x in # those
                  a # given
                if x # some
                # at last
            ]
        """,
        """
        def f(a):
            return [
                x  # each
                # of all
                # those
                for x in a  # given
                if x  # some
                # at last
            ]
        """,
    ),
    "two comments for one line get a line each": (
        """
        def f(a):
            return [a # one
              , # two
              a(b # three
                = # four
                a)]
        """,
        """
        def f(a):
            return [
                a,  # one
                # two
                a(
                    # three
                    # four
                    b=a,
                ),
            ]
        """,
    ),
    "unneeded brackets are removed": (
        "def f(a, b):\n    return ((a) + ((b) * (a - (b)))) ** (-a) if (not (a)) else (lambda: (a))",
        "def f(a, b):\n    return (a + b * (a - b)) ** -a if not a else (lambda: a)\n",
    ),
    "quotes become double if nothing else changes": (
        "def f():\n    return 'a', 'say \"x\"', f'{x}', '\\'', b'x', '''t'''",
        'def f():\n    return "a", \'say "x"\', f\'{x}\', \'\\\'\', b"x", """t"""\n',
    ),
    "a trailing comma puts each element on its own line": (
        "def f():\n    return g(1, 2,)",
        "def f():\n    return g(\n        1,\n        2,\n    )\n",
    ),
    "each statement gets its own line": (
        "def f():\n  x = 1; y = 2 # both\n  if x: return y\n  return x",
        "def f():\n    x = 1\n    y = 2  # both\n    if x:\n        return y\n    return x\n",
    ),
    "a long chain is broken inside its own brackets": (
        "def f():\n    return first_condition_of_all and second_condition_of_all or third_condition_of_all and fourth_one_of_all",
        "def f():\n    return (\n        first_condition_of_all and second_condition_of_all\n"
        "        or third_condition_of_all and fourth_one_of_all\n    )\n",
    ),
    "the body of a lambda is broken inside brackets": (
        f"def f():\n    return lambda a: '{'a' * 60}' '{'b' * 60}' < a",
        f'def f():\n    return (\n        lambda a: "{"a" * 60}"\n        "{"b" * 60}"\n        < a\n    )\n',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_canonical_form(name: str) -> None:
    source, wanted = (textwrap.dedent(text).lstrip("\n") for text in CASES[name])
    assert format_source(source) == wanted
    assert_formats(source)


def _places(text: str) -> list[int]:
    """The offsets where a comment can be inserted: the ends of lines, and the place after each token in brackets."""
    starts = [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]
    places, depth = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        if token.type == tokenize.NEWLINE or (depth and token.type not in (tokenize.NL, tokenize.COMMENT)):
            row, column = token.start if token.type == tokenize.NEWLINE else token.end
            places.append(starts[row - 1] + column)
    return places


@examples(10)
@given(st.data())
def test_comments_at_any_place_are_formatted(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(EXAMPLES)).read_text()
    chosen = data.draw(st.lists(st.sampled_from(_places(text)), min_size=1, max_size=4, unique=True))
    for i, at in enumerate(sorted(chosen, reverse=True)):
        text = text[:at] + data.draw(st.sampled_from(["  # {}\n", "\n# {}\n", "\n\n  # {}\n\n"])).format(i) + text[at:]
    if parse(text).module is not None:
        assert_formats(text)


def test_a_source_with_errors_is_refused() -> None:
    with pytest.raises(SourceError):
        format_source("def f(:\n")
