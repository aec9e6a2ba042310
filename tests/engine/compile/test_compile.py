"""Lowering and the second gate."""

from __future__ import annotations

import ast

import pytest

from albert_tools.engine.check.checker import check, check_or_raise
from albert_tools.engine.compile import gate
from albert_tools.engine.compile.lower import lower
from albert_tools.engine.compile.program import compile_program
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.failure import Failure
from albert_tools.grammar.python_parser import parse_python
from albert_tools.testing import registry

CATALOG = registry()


def lowered(body: str, before: str = "") -> str:
    return lower(check_or_raise(f'{before}def t(x: Any) -> Any:\n    """T."""\n{body}', CATALOG)).text


def test_the_lists_of_the_gate_equal_the_vocabulary() -> None:
    names = set(vocabulary.METHODS) | set(vocabulary.ATTRIBUTES) | {m.split(".")[1] for m in vocabulary.TYPE_METHODS}
    for module, table in vocabulary.facades().items():
        names |= {*module.split(".")[1:], *(part for entry in table for part in entry.split("."))}
    assert names == gate.ATTRIBUTES
    assert {*vocabulary.BUILTINS, *vocabulary.EXCEPTIONS, "ToolError"} == gate.GLOBALS
    assert vocabulary.MODULES == gate.MODULES


def test_other_kinds_of_nodes_are_refused() -> None:
    kinds = {
        name for name in dir(ast) if isinstance(getattr(ast, name), type) and issubclass(getattr(ast, name), ast.AST)
    }
    texts = {
        "With": "with x:\n    pass",
        "ClassDef": "class A:\n    pass",
        "AsyncFunctionDef": "async def f():\n    pass",
        "Yield": "def f():\n    yield 1",
        "YieldFrom": "def f():\n    yield from x",
        "Await": "async def f():\n    await x",
        "Global": "def f():\n    global x",
        "AnnAssign": "x: int = 1",
        "TryStar": "try:\n    pass\nexcept* KeyError:\n    pass",
        "AsyncFor": "async def f():\n    async for i in x:\n        pass",
        "AsyncWith": "async def f():\n    async with x:\n        pass",
    }
    for kind, text in texts.items():
        assert kind in kinds - gate.NODES
        with pytest.raises(gate.Refused):
            gate.judge(parse_python(f"x = 1\n{text}\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@print\ndef f():\n    pass", "decorator"),
        ("def f(x: int):\n    pass", "annotation was left"),
        ("def f(x, /):\n    pass", "plain parameters"),
        ("x = 1\nx.a.b = 3", "assigned or deleted"),
        ("match 1:\n    case int(real=r):\n        pass", "nothing in its brackets"),
        ("match 1:\n    case {'a': 1, **__call}:\n        pass", "not a name"),
        ("match [1]:\n    case [*__call]:\n        pass", "not a name"),
        ("match [1]:\n    case _ as __call:\n        pass", "not a name"),
        ("f = 1\nf(__x=1)", "not a keyword"),
        ("from . import json", "not a module"),
        ("import json as __call", "not a name|invalid"),
        ("\u00e9 = 1", "not ASCII"),
        ("__call('x', {**{}})", "must name its tool"),
    ],
)
def test_the_gate_refuses(text: str, said: str) -> None:
    with pytest.raises(gate.Refused, match=said):
        gate.judge(parse_python(text))


def test_a_limit_passes_every_handler_and_finally() -> None:
    text = lowered(
        "    try:\n        y = 1\n    except ValueError:\n        y = 2\n    else:\n        y = 3\n    finally:\n        print(x)\n"
        "    try:\n        y = 4\n    finally:\n        print(y)\n    return y\n"
    )
    handlers = [h for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Try) for h in n.handlers[:1]]
    assert [ast.unparse(h.type) for h in handlers if h.type] == ["__Fatal"] * 3
    assert sum(isinstance(n, ast.Try) for n in ast.walk(ast.parse(text))) == 3


def test_bodies_of_parallel_with_a_defaultdict_of_their_own_overlap() -> None:
    before = (
        "from collections import defaultdict\n\ndef _count(p: str) -> int:\n    found = defaultdict(int)\n"
        "    found[tools.read_file(path=p)] += 1\n    return len(found)\n\n"
    )
    assert "__gather(True, " in lowered("    return parallel(_count(p) for p in x)\n", before)
    assert "__gather(False, " in lowered('    return [_count("a"), *parallel(_count(p) for p in x)]\n', before)


def test_f_strings_written_as_calls_give_the_same_text() -> None:
    from albert_tools.engine.compile.lower import _Lowering

    source = 'def t(x: Any) -> Any:\n    """T."""\n    return f"a{x!r:>{len(x)}}{x!s}{x!a}{x}"\n'
    checked = check_or_raise(source, CATALOG)
    parsed = parse_python(checked.source)
    module = _Lowering(checked.facts, parsed, True).module(parsed)
    names = {"__join": "".join, "__format": format, "__repr": repr, "__str": str, "__ascii": ascii}
    exec(compile(ast.unparse(module), "<tool>", "exec"), names)  # noqa: S102 (ours)
    assert names["t"]("é") == "a'é'é'\\xe9'é"  # type: ignore[operator]


def test_a_refusal_of_the_gate_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = check_or_raise('def t() -> int:\n    """T."""\n    return len("a")\n', CATALOG)
    monkeypatch.setattr(gate, "GLOBALS", frozenset())
    with pytest.raises(Failure, match="the checks disagree") as caught:
        compile_program(checked)
    assert caught.value.code == "internal_error"


def test_lines_map_back_to_the_source() -> None:
    program = compile_program(
        check_or_raise(
            'import json\n\n\ndef t(x: Any) -> Any:\n    """T."""\n    y = {\n        "a": 1,\n    }\n\n    return y\n',
            CATALOG,
        )
    )
    text = program.lowered.splitlines()
    assert program.lines[text.index("    y = {'a': 1}")] == 6
    assert program.lines[text.index("    return y")] == 10


def test_each_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text, *more, **named: parsed.append(text) or parse(text, *more, **named))
    checked = check_or_raise('def t(x: int) -> int:\n    """T."""\n    return x\n', CATALOG)
    program = compile_program(checked)
    assert parsed == [checked.source, program.lowered]
    assert compile_program(checked) == program  # from a tree of its own


def test_a_refused_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text, *more, **named: parsed.append(text) or parse(text, *more, **named))
    source = 'def t() -> int:\n    """T."""\n    with x as y:\n        return y + "a".uper()\n'
    codes = {d.code for d in check(source, CATALOG).diagnostics}
    assert "unknown-attribute" in codes
    assert len(codes) > 1
    assert len(parsed) == len(set(parsed)) == 2  # the source and its translation
