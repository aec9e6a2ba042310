"""Which calls are certainly made before which others. `A` reads and `B` writes; each program has one of each."""

from __future__ import annotations

import pytest

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.model.overlaps import is_before
from tests.helpers.harness import catalog

#: Programs, and whether `A` is certainly made before `B`, and `B` before `A`.
PROGRAMS = {
    "one after the other": ("x = A\nB", True, False),
    "in one expression": ("x = [A, B]", False, False),
    "in two branches": ("if p:\n    x = A\nelif q:\n    pass\nelse:\n    B", True, False),
    "in a test and in its branch": ("if A:\n    B", True, False),
    "in a match": ("match p:\n    case 'a' if A:\n        pass\n    case 'b':\n        B", True, False),
    "in a loop": ("for x in q:\n    A\n    B", False, False),
    "in a while": ("while A:\n    B", False, False),
    "before a loop": ("x = A\nfor y in q:\n    B", True, False),
    "what a loop runs over": ("for x in A.split():\n    B", True, False),
    "what a loop runs over, one by one": ("for x in (A for y in q):\n    B", False, False),
    "a lazy value that a name holds": ("x = (A for y in q)\nfor z in x:\n    B", False, False),
    "after a loop": ("for y in q:\n    x = A\nB", True, False),
    "in a loop's else": ("for y in q:\n    x = A\nelse:\n    B", False, False),
    "in a branch that ends the loop": ("for y in q:\n    if y:\n        return A\n    B", False, False),
    "in a comprehension": ("x = [A for y in q]\nB", True, False),
    "in a function with a name": ("f = lambda: A\nB\nx = f()", False, True),
    "in a key": ("B\nx = sorted(q, key=lambda y: A)", False, False),
    "in a table of functions": ("f = {'a': lambda: A, 'b': lambda: q}\nB\nx = f[p]()", False, False),
    "in handlers": ("try:\n    x = A\nexcept ToolError:\n    B", True, False),
    "at the end of a try": ("try:\n    B\nfinally:\n    x = A", False, True),
    "in a helper": ("x = _a()\nB", True, False),
    "in two helpers": ("_b()\nx = _a()", False, True),
    "in two helpers of one statement": ("x = [_a(), _b()]", False, False),
    "in a helper of a loop": ("for y in q:\n    x = _a()\n    B", False, False),
    "in a helper that is called twice": ("x = _a()\nB\ny = _a()", False, False),
    "inside one helper": ("_both()", True, False),
    "inside one helper in a loop": ("for y in q:\n    _both()", False, False),
    "inside one helper that ends a loop": ("for y in q:\n    if y:\n        return _both()", True, False),
    "inside one helper that is called twice": ("_both()\n_both()", False, False),
    "in a recursion": ("_again(p)", False, False),
    "in a nested function": ("def inner() -> None:\n    B\n\nx = A\ninner()", True, False),
    "in a callback": ("x = list(map(_named, q))\nB", False, False),
}
HELPERS = """
def _a() -> str:
    return A


def _b() -> None:
    B


def _named(name: str) -> str:
    return A


def _both() -> None:
    x = A
    B


def _again(p: str) -> None:
    x = A
    if x:
        _again(x)
    B
"""
CALLS = {"A": 'tools.read_file(path="a")', "B": 'tools.write_file(path="b", content="")'}


@pytest.mark.parametrize(("body", "a_first", "b_first"), PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_made_first(body: str, a_first: bool, b_first: bool) -> None:
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    used = [h for h in HELPERS.split("\n\n\n") if h.split("def ")[1].split("(")[0] in body]
    source = f'def t(p: str, q: list[str]) -> Any:\n    """Do it."""\n{lines}' + "".join(
        f"\n\n{h.strip()}\n" for h in used
    )
    for letter, call in CALLS.items():
        source = source.replace(letter, call) if letter == "B" else source.replace("Any", "\0").replace("A", call)
    manifest = analyse(check_or_raise(source.replace("\0", "Any"), catalog()))
    reads, writes = ([c.step for c in manifest.calls if c.tool == name] for name in ("read_file", "write_file"))
    assert reads
    assert writes
    assert all(is_before(a, b) for a in reads for b in writes) is a_first
    assert all(is_before(b, a) for a in reads for b in writes) is b_first
