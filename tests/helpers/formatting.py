"""Checks of the formatter's output."""

from __future__ import annotations

import ast
import sys
from collections import Counter

from albert_tools.grammar.parse import parse
from albert_tools.grammar.tree import Module
from albert_tools.grammar.unparse import unparse


def assert_formats(source: str) -> None:
    """Assert that formatting keeps the tree and the comments, and that formatting the result again changes nothing."""
    parsed = parse(source)
    assert parsed.module is not None, parsed.diagnostics
    text = unparse(parsed.module)
    again = parse(text).module
    assert again is not None, text
    assert _equal(again, parsed.module), text
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    assert Counter(c.text for c in again.comments) == Counter(c.text for c in parsed.module.comments)
    assert unparse(again) == text, text


def _equal(one: Module, other: Module) -> bool:
    """Compare trees. A long chain of `elif` is a deep tree."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        return one == other
    finally:
        sys.setrecursionlimit(limit)
