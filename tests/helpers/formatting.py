"""Checks of the formatter's output."""

from __future__ import annotations

import ast
from collections import Counter

from albert_tools.grammar.parse import parse
from albert_tools.grammar.recursion import with_room
from albert_tools.grammar.unparse import unparse


def assert_formats(source: str) -> None:
    """Assert that formatting keeps the tree and the comments, and that formatting the result again changes nothing."""
    parsed = parse(source)
    assert parsed.module is not None, parsed.diagnostics
    text = unparse(parsed.module)
    again = parse(text).module
    assert again is not None, text
    assert with_room(again.__eq__)(parsed.module), text
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    assert Counter(c.text for c in again.comments) == Counter(c.text for c in parsed.module.comments)
    assert unparse(again) == text, text
