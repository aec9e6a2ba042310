"""A draft: the calls of a tool that is not written yet, as expressions over its parameters and over earlier results.

`matches` replays a draft on a piece of a trace: with the same parameters, it makes the same calls, and each argument comes from the
same place. No values of results are needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Struct, field

from albert_tools.engine.model.definition import Json, Schema
from albert_tools.engine.model.redaction import REDACTED
from albert_tools.engine.suggest.pieces import Piece, Shape
from albert_tools.engine.suggest.traces import Path, at, comparable, keys_of

#: Names that a draft uses itself.
TAKEN = frozenset(("tools", "tool", "example", "parallel", "ToolError", "len", "item", "each", "Any"))


class Part(Struct, frozen=True):
    """A part of the result of an earlier step: ``user["orders"][0]``. ``*`` is a list of a part of each item."""

    step: int
    path: Path


class Item(Struct, frozen=True):
    """A part of the item of a loop: ``item["id"]``."""

    path: Path


class Given(Struct, frozen=True):
    """A parameter."""

    name: str


class Nested(Struct, frozen=True):
    """An object, or a list, whose values are expressions. The keys of a list are its indexes."""

    values: tuple[tuple[str | int, Any], ...]


class Joined(Struct, frozen=True):
    """A text that contains parts of results: an f-string."""

    parts: tuple[str | Part, ...]


Expression = Part | Item | Given | Nested | Joined


class Parameter(Struct):
    """A parameter: where it is used, the schema of the argument that it becomes, and the value in each piece."""

    name: str
    step: int
    path: Path
    schema: Schema
    values: list[Json]
    default: Json = UNSET


class Step(Struct):
    """A call, or a loop of calls `over` a list. With `whole`, a session may have stopped before the end of the list."""

    tool: str
    arguments: dict[str, Expression] = field(default_factory=dict)
    over: Part | Given | None = None
    whole: bool = False


class Draft(Struct, eq=False):
    """One draft, and the pieces that it was made of.

    Attributes:
        pieces: The pieces on which a replay makes the same calls.
        tried: How many pieces have the same tools and arguments' names.
        reads: Whether all of its calls only read.
        flows: How many values come from earlier results.
        single: The lists of which a program takes the only item.
        notes: What a person should know.
    """

    shapes: tuple[Shape, ...]
    loops: tuple[bool, ...]
    reads: bool
    pieces: list[Piece]
    steps: list[Step] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    single: set[Part] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    flows: int = 0
    tried: int = 0

    def matches(self, piece: Piece) -> bool:
        """Whether a replay on the piece makes the same calls, with arguments from the same places."""
        piece.loops = self.loops
        return _Replay(self, piece).run()


class _Replay:
    def __init__(self, draft: Draft, piece: Piece) -> None:
        self.draft = draft
        self.piece = piece
        self.bound: dict[str, Any] = {}

    def run(self) -> bool:
        return all(self._step(n, step) for n, step in enumerate(self.draft.steps))

    def _step(self, n: int, step: Step) -> bool:
        calls = self.piece.steps[n]
        if step.over is None and len(calls) != 1:
            return False
        return all(
            self._is(expression, n, i, number, (name,), step)
            for i, number in enumerate(calls)
            for name, expression in step.arguments.items()
        )

    def _is(self, expression: Expression, n: int, i: int, number: int, path: Path, step: Step) -> bool:
        """Whether the argument at `path` of a call is what the expression says. `i` is the round of the loop."""
        match expression:
            case Given():
                return self._bind(expression.name, number, path)
            case Item() if isinstance(step.over, Given):
                # Each round has an item of its own.
                return not self.piece.is_chosen(number, path)
            case Item() if isinstance(step.over, Part):
                want = Part(step.over.step, (*step.over.path, i, *expression.path))
                rounds = len(self.piece.steps[n])
                return self._comes_from(
                    want, number, path, n, lambda size: size == rounds or (step.whole and size > rounds)
                )
            case Part():
                return self._comes_from(expression, number, path, n)
            case Nested():
                return keys_of(self.piece.value(number, path)) == [key for key, _ in expression.values] and all(
                    self._is(part, n, i, number, (*path, key), step) for key, part in expression.values
                )
            case Joined():
                return self._is_joined(expression, n, number, path)
        return False

    def _bind(self, name: str, number: int, path: Path) -> bool:
        value = comparable(self.piece.value(number, path))
        return self.bound.setdefault(name, value) == value and not self.piece.is_chosen(number, path)

    def _comes_from(
        self, want: Part, number: int, path: Path, n: int, is_size: Callable[[int], bool] | None = None
    ) -> bool:
        alone = [sum(type(p) is int for p in part.path) for part in self.draft.single if _is_within(want, part)]
        return any(
            (source.call, source.path) == (want.step, want.path)
            and (is_size is None or is_size(source.lengths[0]))
            and all(source.lengths[depth] == 1 for depth in alone)
            and _is_all(source.path, source.lengths, self.piece.value(number, path))
            for source in self.piece.sources(number, "/".join(map(str, path)), n)
        )

    def _is_joined(self, expression: Joined, n: int, number: int, path: Path) -> bool:
        text_parts = texts(self.piece, number, path)
        if len(text_parts) != len(expression.parts):
            return False
        for part, (text, name) in zip(expression.parts, text_parts, strict=True):
            if isinstance(part, str):
                if part != text or name:
                    return False
            elif not any((s.call, s.path) == (part.step, part.path) for s in self.piece.sources(number, name, n)):
                return False
        return True


def _is_within(want: Part, part: Part) -> bool:
    return want.step == part.step and want.path[: len(part.path)] == part.path


def _is_all(path: Path, lengths: tuple[int, ...], value: Json) -> bool:
    """Whether an argument that is made of all items of a list has as many items as the list."""
    if "*" not in path:
        return True
    depth = sum(type(p) is int for p in path[: path.index("*")])
    return lengths[depth] == size_of(value)


def size_of(value: Json) -> int:
    """The number of items of a list, of which the record may have only the first ones; -1 for other values."""
    if not isinstance(value, list):
        return -1
    last = re.fullmatch(r"… (\d+) more", str(value[-1])) if value else None
    return len(value) - 1 + int(last[1]) if last else len(value)


def texts(piece: Piece, number: int, path: Path) -> list[tuple[str, str]]:
    """The parts of a text: constants, and values with the names of their sources in `TracedCall.sources`. Empty if it has none."""
    call, name = piece.call(number), "/".join(map(str, path))
    value = at(call.arguments, path)
    if not isinstance(value, str) or REDACTED in value:
        return []
    spans = []
    for each in call.sources:
        whole, _, span = each.partition("~")
        if whole == name and span:
            begin, end = map(int, span.split("-"))
            spans.append((begin, end, each))
    parts, last = list[tuple[str, str]](), 0
    for begin, end, each in sorted(spans):
        parts += [(value[last:begin], ""), (value[begin:end], each)]
        last = end
    return [part for part in [*parts, (value[last:], "")] if part[0]] if parts else []
