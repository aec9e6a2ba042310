"""A source with Python outside the language. The checker also reports its other problems, and reports no false problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tools.engine.check.checker import check
from albert_tools.engine.check.discovery import RULE_MODULES
from albert_tools.engine.check.partial_check import CAUSED
from albert_tools.grammar.parse import parse
from albert_tools.grammar.tree import ExprStmt, FunctionDef
from albert_tools.testing import registry
from tests.helpers.effort import examples

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "tools").glob("*.tool"))

OUTSIDE = {
    "with tools.read_file(path='a') as held:\n    print(held)": "no-with",
    "global N": "no-global",
    "async with tools.read_file(path='a'):\n    pass": "no-async",
    "for i in [1]:\n    await print(i)": "no-async",
    "i = 1j": "no-complex",
    "match 1:\n    case str(n):\n        print(n)": "no-class-pattern",
    "from math import *": "no-star-import",
    "try:\n    pass\nexcept* ValueError:\n    pass": "no-except-star",
}

MANY = '''import os
async def fetch(url, *args):
    """Fetch."""
    with open("a.txt") as f:
        data = f.read()
    while True:
        result = await tools.read_fil(path=url)
    try:
        value = tools.write_file(pth=url, content=data)
    except:
        pass
    return value.__class__
'''


def test_all_problems_are_reported_at_once() -> None:
    report = check(MANY, registry())
    assert report.checked is None
    assert [(d.code, d.span.line, d.span.column) for d in report.diagnostics] == [
        ("unknown-module", 1, 8),
        ("no-async", 2, 1),
        ("no-annotation", 2, 17),
        ("no-star-parameter", 2, 23),
        ("no-with", 4, 5),
        ("outside-name", 4, 10),
        ("no-async", 7, 18),
        ("unknown-tool", 7, 24),
        ("tool-arguments", 9, 34),
        ("private-attribute", 12, 18),
    ]
    assert all(d.fix is None for d in report.diagnostics)


def with_statement(path: Path, statement: str) -> str:
    """An example with one more statement at the start of its tool."""
    source = path.read_text()
    module = parse(source).module
    assert module is not None
    function = next(s for s in module.body if isinstance(s, FunctionDef) and not s.name.startswith("_"))
    first = function.body[0]
    assert isinstance(first, ExprStmt)
    lines = source.split("\n")
    lines[first.span.end_line : first.span.end_line] = [f"    {line}" for line in statement.split("\n")]
    return "\n".join(lines)


@pytest.mark.parametrize("statement", OUTSIDE)
def test_a_correct_source_has_no_other_findings(statement: str) -> None:
    # Each statement is inserted into a third of the examples.
    for path in EXAMPLES[list(OUTSIDE).index(statement) % 3 :: 3]:
        report = check(with_statement(path, statement), registry())
        # Some examples call others, which are not in this registry.
        found = {d.code for d in report.diagnostics} - {"unknown-tool"}
        assert found == {OUTSIDE[statement]}, (path.name, report.diagnostics)


#: The code of each rule's finding → a source that has it.
FLAWED = {
    c.code: c.example
    for rule in RULE_MODULES
    for c in rule.CODES
    if c.example and c.code not in CAUSED | {"syntax"} and parse(c.example).module is not None
}


WITH = "def _wait() -> None:\n    with 1:\n        pass\n"


@pytest.mark.parametrize("code", FLAWED)
def test_each_finding_is_also_reported_beside_a_with(code: str) -> None:
    alone = {d.code for d in check(FLAWED[code], registry()).diagnostics}
    beside = {d.code for d in check(f"{FLAWED[code]}\n{WITH}", registry()).diagnostics}
    assert beside - CAUSED == (alone - CAUSED) | {"no-with"}


CASCADES = {
    "a star parameter of a helper": (
        "def _f(*xs: int) -> int:\n    return sum(xs) + len(xs)\n\n",
        "return _f(a, 1, 2)",
        ["no-star-parameter"],
    ),
    "names that the module declares": ("", "global last\n    last += a\n    raise last", ["no-global"]),
    "a generator": ("def _f(n: int) -> Any:\n    yield from (i for i in [n])\n\n", "return list(_f(a))", ["no-yield"]),
    "the methods and fields of a class": (
        "class Stack:\n    size: int = 0\n    def __init__(self):\n        self.items = []\n    def push(self, x):\n"
        "        super().push(x)\n        self.items.append(x)\n\n",
        "s = Stack()\n    s.push(a)\n    return [s.items, s.size]",
        ["no-class"],
    ),
    "what a class does": (
        "class Log:\n    def save(self):\n        self.file = open(self.path)\n        tools.write_fil(path=self.path)\n\n",
        "with Log(a):\n        eval(a)",
        ["no-class", "outside-name", "unknown-tool", "no-with", "outside-name"],
    ),
}


@pytest.mark.parametrize("name", CASCADES)
def test_only_causes_are_reported(name: str) -> None:
    above, body, codes = CASCADES[name]
    source = f'{above}def t(a: int) -> Any:\n    """Do it."""\n    {body}\n'
    assert [d.code for d in check(source, registry()).diagnostics] == codes


SNIPPETS = st.sampled_from(
    [
        "while x:",
        "    ",
        "\n",
        "with a as b:",
        "pass",
        "def f(*a):",
        "x = 1",
        "await y",
        "yield",
        "async ",
        "class A:",
        "@a",
        "return",
        "(",
        ")",
        "match x:",
        "case A(b):",
        "global q",
        "lambda *a: 1",
        "1j",
        "é = 2",
        "import os",
        "'''",
        "f'{x}'",
    ]
)


@examples(100)
@given(st.lists(SNIPPETS, max_size=20).map(" ".join))
def test_no_text_makes_it_raise(source: str) -> None:
    check(source, registry())
