"""Near-misses: a source with one mistake that people and models make.

A wrong name, a dropped return, a swapped operator, a changed literal, a wrong key, a lost argument, a lost statement, two
statements in the wrong order. The edits are made in CPython's tree of the source, so the result is nearly always Python.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tests.generators.choices import Choices, pick


class Mutation(NamedTuple):
    """One edit: the bytes from `start` to `end` are replaced."""

    start: int
    end: int
    text: str


def mutant(choices: Choices, source: str) -> str:
    """The source with one mistake. It must be Python with at least one statement."""
    data = source.encode()
    change = pick(choices, list(mutations(source)))
    return (data[: change.start] + change.text.encode() + data[change.end :]).decode()


_OPERATORS = {"+": "-", "-": "+", "*": "+", "/": "//", "//": "/", "%": "//", "&": "|", "|": "&", "^": "&", "**": "*"}
_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "in": "not in", "not in": "in"}
_SWAPPED = {**_OPERATORS, **_COMPARISONS, "and": "or", "or": "and", "is": "is not", "is not": "is"}


def mutations(source: str) -> Iterator[Mutation]:
    """All edits."""
    tree = ast.parse(source)
    place = _Places(source)
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                start, end = place(node)
                yield Mutation(start, end, _misspelt(node.id))
                yield Mutation(start, end, names[(names.index(node.id) + 1) % len(names)])
            case ast.Constant():
                start, end = place(node)
                yield from (Mutation(start, end, text) for text in _literals(node.value))
            case ast.Return() | ast.Raise() | ast.Expr() | ast.Assign() | ast.AugAssign():
                start, end = place(node)
                yield Mutation(start, end, "pass")
                if isinstance(node, ast.Return) and node.value is not None:
                    yield Mutation(start, place(node.value)[0], "")
            case ast.BinOp():
                yield from _swapped(place, node.left, node.right)
            case ast.BoolOp():
                yield from _swapped(place, node.values[0], node.values[1])
            case ast.Compare():
                yield from _swapped(place, node.left, node.comparators[0])
            case ast.If() | ast.IfExp():
                start, end = place(node.test)
                yield Mutation(start, start, "not ")
            case ast.Attribute():
                end = place(node)[1]
                yield Mutation(end - len(node.attr), end, _misspelt(node.attr))
            case ast.Call():
                yield from _arguments(place, node)
            case ast.FunctionDef():
                # The docstring stays first.
                for one, two in zip(node.body[1:], node.body[2:], strict=False):
                    a, b = place(one), place(two)
                    between = place.text(a[1], b[0])
                    yield Mutation(a[0], b[1], place.text(*b) + between + place.text(*a))


def _arguments(place: _Places, node: ast.Call) -> Iterator[Mutation]:
    for one in node.keywords:
        start, end = place(one)
        if one.arg is not None:
            yield Mutation(start, start + len(one.arg), _misspelt(one.arg))
    given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    for i, argument in enumerate(given):
        start, end = place(argument)
        if i + 1 < len(given):
            end = place(given[i + 1])[0]
        elif i:
            start = place(given[i - 1])[1]
        yield Mutation(start, end, "")


def _swapped(place: _Places, left: ast.expr, right: ast.expr) -> Iterator[Mutation]:
    start, end = place(left)[1], place(right)[0]
    between = place.text(start, end)
    operator = " ".join(between.strip("() \n\\").split())
    if operator in _SWAPPED and between.count(operator) == 1:
        yield Mutation(start, end, between.replace(operator, _SWAPPED[operator]))


def _misspelt(name: str) -> str:
    return name[:-2] + name[:-3:-1] if len(name) > 2 and name[-1] != name[-2] else name + "s"


def _literals(value: object) -> list[str]:
    match value:
        case bool():
            return [str(not value), "None"]
        case int() | float():
            return [str(value + 1), f"-{value}", f'"{value}"']
        case str():
            return [repr(value + "s"), repr(value[:-1]), "0"]
        case None:
            return ["0", "[]"]
    return []


class _Places:
    """The bytes that a node covers."""

    def __init__(self, source: str) -> None:
        self._data = source.encode()
        lines = self._data.split(b"\n")
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def __call__(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def text(self, start: int, end: int) -> str:
        return self._data[start:end].decode()
