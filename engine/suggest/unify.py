"""Finds what pieces with the same tools and arguments' names have in common (anti-unification), as a draft.

Each argument becomes the first of these that explains it in enough pieces: a parameter that there is already, a part of an earlier
result, an object or a list of such, a text that contains such, a parameter. A constant becomes the default of its parameter. Where
the values come from varying places of the piece's own results, the agent has *chosen*: there is no draft.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from albert_tools.engine.model.definition import Json, Schema, ToolDefinition
from albert_tools.engine.model.redaction import REDACTED
from albert_tools.engine.suggest.drafts import (
    TAKEN,
    Draft,
    Expression,
    Given,
    Item,
    Joined,
    Nested,
    Parameter,
    Part,
    Step,
    size_of,
    texts,
)
from albert_tools.engine.suggest.pieces import Piece
from albert_tools.engine.suggest.traces import Path, bits, comparable, keys_of

#: The information in bits that the distinct values of a flow need together.
EVIDENCE = 16.0
#: The share of the pieces that a flow must explain, and in which a list must be longer for "always the first item".
LEAST_SHARE, NEARLY_ALL = 0.1, 0.9
#: The most pieces of a cluster that are compared. All of them are replayed.
MAX_COMPARED = 400
#: The most parameters, and the most characters of a default and of the constant parts of a text.
MAX_PARAMETERS, MAX_CONSTANT = 10, 80
#: The most levels of objects and lists in an argument that are looked into.
MAX_DEPTH = 4


class NoDraft(Exception):
    """There is no draft, and why."""


class Unifier(Struct):
    """Makes one draft. Pieces that it can't explain are put into `rest`.

    Args:
        draft: The draft, without steps.
        definition: The definition of each tool.
        supported: Whether enough sessions of enough people are behind some pieces.
    """

    draft: Draft
    definition: Callable[[str], ToolDefinition]
    supported: Callable[[Iterable[Piece]], bool]
    rest: list[Piece] = field(default_factory=list)

    def run(self) -> None:
        """Make the steps and the parameters. Raises `NoDraft`."""
        draft = self.draft
        for n, (tool, names) in enumerate(draft.shapes):
            step = Step(tool)
            draft.steps.append(step)
            if draft.loops[n]:
                self._loop(n, step, names)
            else:
                step.arguments = {name: self._unify(n, (name,)) for name in names}
        if len(draft.parameters) > MAX_PARAMETERS:
            raise NoDraft(f"more than {MAX_PARAMETERS} parameters")
        if not self.supported(draft.pieces):
            raise NoDraft("too few sessions agree")
        if not _connected(draft):
            raise NoDraft("the calls only happen to be neighbours")

    # One argument of a call that is made once, or that is the same in all rounds of a loop

    def _unify(self, n: int, path: Path) -> Expression:
        values = [piece.value(piece.steps[n][0], path) for piece in self.draft.pieces]
        shared = self._shared(values)
        if shared is not None:
            return shared
        flow = self._flow(n, path, values)
        if flow is not None:
            return flow
        inner = self._inner(n, path, values)
        if inner is not None:
            return inner
        text = self._text(n, path)
        return text if text is not None else self._given(n, path)

    def _shared(self, values: list[Json]) -> Given | None:
        keys = [comparable(v) for v in values]
        if not _is_proof(values):
            return None
        same = (p for p in self.draft.parameters if [comparable(v) for v in p.values] == keys)
        return next((Given(p.name) for p in same), None)

    def _flow(self, n: int, path: Path, values: list[Json]) -> Part | None:
        name = "/".join(map(str, path))
        candidates = [
            {
                Part(s.call, s.path): s.lengths
                for s in piece.sources(piece.steps[n][0], name, n)
                if "*" not in s.path or s.lengths[_depth(s.path)] == size_of(value)
            }
            for piece, value in zip(self.draft.pieces, values, strict=True)
        ]
        best: Part
        best, keep = _most_common(candidates, lambda part: _likeliness(part, path))
        if not _is_proof(values[i] for i in keep) or not self.supported(self.draft.pieces[i] for i in keep):
            return None
        self._demand_fixed(best, [candidates[i][best] for i in keep], len(keep))
        self._keep(keep)
        self.draft.flows += 1
        return best

    def _demand_fixed(self, part: Part, lengths: list[tuple[int, ...]], count: int) -> None:
        """A place in a list is a rule only if the lists have one item each, or if it is always the first of several.

        One round of a loop is a choice, too.
        """
        for depth, at in enumerate(i for i, p in enumerate(part.path) if type(p) is int):
            sizes = [each[depth] for each in lengths]
            # Of longer lists, the first item must be what nearly all sessions take.
            is_rule = sum(size > 1 for size in sizes) >= 3 and count >= NEARLY_ALL * min(self.draft.tried, MAX_COMPARED)
            is_round = self.draft.loops[part.step] and at == 0
            if part.path[at] == 0 and set(sizes) == {1} and not is_round:
                self.draft.single.add(Part(part.step, part.path[:at]))
            elif part.path[at] != 0 or not is_rule or is_round:
                raise NoDraft("the agent chose among several")
            else:
                self.draft.notes.append(f"always takes the first item of {_spelled(self.draft, part, at)}")

    def _inner(self, n: int, path: Path, values: list[Json]) -> Nested | None:
        """An object or a list with at least one value from an earlier result. Otherwise the whole value is one parameter."""
        keys = keys_of(values[0])
        known = self._schema(n, path).get("properties") or {}
        # A key is a constant, so it must not be content.
        names_only = all(key in known or (key.isidentifier() and not self._decides(n, path)) for key in map(str, keys))
        if not keys or len(path) > MAX_DEPTH or (isinstance(keys[0], str) and not names_only):
            return None
        if any(keys_of(value) != keys for value in values):
            return None
        draft, before = self.draft, self.draft.flows
        saved = ([*draft.parameters], [*draft.pieces], [*self.rest], {*draft.single}, [*draft.notes])
        parts = tuple((key, self._unify(n, (*path, key))) for key in keys)
        if draft.flows == before:
            draft.parameters, draft.pieces, self.rest, draft.single, draft.notes = saved
            return None
        return Nested(parts)

    def _text(self, n: int, path: Path) -> Joined | None:
        piece_texts = [texts(piece, piece.steps[n][0], path) for piece in self.draft.pieces]
        constants = {tuple("" if name else text for text, name in each) for each in piece_texts}
        if not piece_texts[0] or len(constants) != 1 or not _is_plain("".join(*constants)) or self._decides(n, path):
            return None
        parts: list[str | Part] = []
        for i, (text, name) in enumerate(piece_texts[0]):
            if not name:
                parts.append(text)
                continue
            sources = [
                {Part(s.call, s.path): s.lengths for s in piece.sources(piece.steps[n][0], each[i][1], n)}
                for piece, each in zip(self.draft.pieces, piece_texts, strict=True)
            ]
            best, keep = _most_common(sources, lambda part: _likeliness(part, path))
            if len(keep) < len(piece_texts) or any(type(p) is int for p in best.path):
                return None
            if not _is_proof(each[i][0] for each in piece_texts):
                return None
            parts.append(best)
        self.draft.flows += 1
        return Joined(tuple(parts))

    # A loop

    def _loop(self, n: int, step: Step, names: tuple[str, ...]) -> None:
        draft = self.draft
        varied = [
            name
            for name in names
            if any(len({comparable(p.value(k, (name,))) for k in p.steps[n]}) > 1 for p in draft.pieces)
        ]
        if not varied:
            raise NoDraft("a loop over nothing")
        step.over = self._list(n, step, varied)
        if step.over is not None:
            draft.flows += 1
        else:
            step.over = self._given_list(n, step, varied)
        step.arguments |= {name: self._unify(n, (name,)) for name in names if name not in varied}

    def _list(self, n: int, step: Step, varied: list[str]) -> Part | None:
        """The list in an earlier result whose items all varied arguments come from."""
        draft = self.draft
        lists = [self._lists(piece, n, varied) for piece in draft.pieces]
        sizes = [len(piece.steps[n]) for piece in draft.pieces]
        exact = [{each for each in one if one[each] == size} for one, size in zip(lists, sizes, strict=True)]
        best, keep = _most_common(exact, str)
        if self._callee(n).only_reads:
            # A reading loop may go on where a session has stopped.
            other, more = _most_common(lists, str)
            if len(more) > 1.1 * len(keep):
                best, keep, step.whole = other, more, True
        kept = [draft.pieces[i] for i in keep]
        values = [p.value(k, (name,)) for p in kept for k in p.steps[n] for name in varied]
        if sum(sizes[i] > 1 for i in keep) < 2 or not self.supported(kept) or not _is_proof(values):
            step.whole = False
            return None
        part: Part
        part, paths = best
        if step.whole:
            draft.notes.append(
                f"reads all of {_spelled(draft, part, len(part.path))}, also where a session stopped early"
            )
        self._keep(keep)
        step.arguments = {name: Item(path) for name, path in zip(varied, paths, strict=True)}
        return part

    def _lists(self, piece: Piece, n: int, varied: list[str]) -> dict[tuple[Part, tuple[Path, ...]], int]:
        """The lists of which the calls of a loop take one item after the other, each with the paths in the item, and its length."""
        by_name = []
        for name in varied:
            common: dict[tuple[Part, Path], int] = {}
            for i, number in enumerate(piece.steps[n][:50]):
                here: dict[tuple[Part, Path], int] = {}
                for source in piece.sources(number, name, n):
                    places = [d for d, p in enumerate(source.path) if type(p) is int]
                    if len(places) == 1 and source.path[places[0]] == i and "*" not in source.path:
                        at = places[0]
                        here[Part(source.call, source.path[:at]), source.path[at + 1 :]] = source.lengths[0]
                common = {k: v for k, v in here.items() if not i or common.get(k) == v}
            by_name.append(common)
        lists: dict[tuple[Part, tuple[Path, ...]], int] = {}
        for part in set.intersection(*({part for part, _ in common} for common in by_name)):
            paths = [
                min(
                    (path for p, path in common if p == part),
                    key=lambda path: (path[-1:] != (name,), len(path), str(path)),
                )
                for name, common in zip(varied, by_name, strict=True)
            ]
            lists[part, tuple(paths)] = by_name[0][part, paths[0]]
        return lists

    def _given_list(self, n: int, step: Step, varied: list[str]) -> Given:
        draft = self.draft
        keep = [
            i
            for i, p in enumerate(draft.pieces)
            if not any(p.is_chosen(k, (name,)) for k in p.steps[n] for name in varied)
        ]
        self._demand_own(keep)
        rows = [[[p.value(k, (name,)) for name in varied] for k in p.steps[n]] for p in draft.pieces]
        schemas = [self._schema(n, (name,)) for name in varied]
        if len(varied) == 1:
            items: Schema = schemas[0]
            values = [[row[0] for row in each] for each in rows]
            name = varied[0] if varied[0].endswith("s") else f"{varied[0]}s"
            step.arguments = {varied[0]: Item(())}
        else:
            items = {"type": "object", "properties": dict(zip(varied, schemas, strict=True)), "required": varied}
            values = [[dict(zip(varied, row, strict=True)) for row in each] for each in rows]
            name = "rows"
            step.arguments = {each: Item((each,)) for each in varied}
        return self._parameter(name, n, (), {"type": "array", "items": items}, values)

    # Parameters

    def _given(self, n: int, path: Path) -> Given:
        self._demand_own([i for i, p in enumerate(self.draft.pieces) if not p.is_chosen(p.steps[n][0], path)])
        values = [piece.value(piece.steps[n][0], path) for piece in self.draft.pieces]
        name = next((p for p in reversed(path) if isinstance(p, str)), "value")
        given = self._parameter(name, n, path, self._schema(n, path), values)
        if self._is_constant(n, path, values):
            self.draft.parameters[-1].default = values[0]
        return given

    def _is_constant(self, n: int, path: Path, values: list[Json]) -> bool:
        """Whether a value may be a default: the same for all, plain, no destination, and in no result before."""
        value, name = values[0], "/".join(map(str, path))
        return (
            isinstance(value, str | int | float)
            and all(type(v) is type(value) and v == value for v in values)
            and (not isinstance(value, str) or _is_plain(value))
            and not self._decides(n, path)
            and not any(name in p.call(p.steps[n][0]).sources for p in self.draft.pieces)
            and self.supported(self.draft.pieces)
        )

    def _parameter(self, name: str, n: int, path: Path, schema: Schema, values: list[Json]) -> Given:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
        name = name if name.isidentifier() else "value"
        taken, base, number = {*TAKEN, *keyword.kwlist, *(p.name for p in self.draft.parameters)}, name, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        self.draft.parameters.append(Parameter(name, n, path, schema, values))
        return Given(name)

    def _demand_own(self, keep: list[int]) -> None:
        """Keep the pieces in which a value was not first seen in the piece's own results."""
        if not self.supported(self.draft.pieces[i] for i in keep):
            raise NoDraft("the agent chose among several")
        self._keep(keep)

    def _keep(self, keep: list[int]) -> None:
        draft = self.draft
        if len(keep) < len(draft.pieces):
            kept = {*keep}
            self.rest += [p for i, p in enumerate(draft.pieces) if i not in kept]
            draft.pieces = [draft.pieces[i] for i in keep]
            draft.parameters = [replace(p, values=[p.values[i] for i in keep]) for p in draft.parameters]

    def _decides(self, n: int, path: Path) -> bool:
        """Whether a constant could decide where an effect happens: also one by which a contact is looked up, to write to it."""
        return not self.draft.reads and self._callee(n).declared.uses.get(str(path[0])) != "payload"

    def _callee(self, n: int) -> ToolDefinition:
        return self.definition(self.draft.shapes[n][0])

    def _schema(self, n: int, path: Path) -> Schema:
        parameter = self._callee(n).parameter(str(path[0]))
        schema: Schema = parameter.schema if parameter is not None else {}
        for part in path[1:]:
            inner = schema.get("items") if type(part) is int else (schema.get("properties") or {}).get(part)
            schema = inner if isinstance(inner, dict) else {}
        return schema


def _is_plain(text: str) -> bool:
    """Whether a text may stand in a draft as a constant."""
    return len(text) <= MAX_CONSTANT and text.isprintable() and REDACTED not in text


def _is_proof(values: Iterable[Json]) -> bool:
    """Whether values are so many, and say so much, that where they are equal to others this is no accident."""
    distinct = {comparable(value): value for value in values}.values()
    return len(distinct) > 1 and sum(map(bits, distinct)) >= EVIDENCE


def _most_common(collections: Sequence[Collection[Any]], rank: Callable[[Any], Any]) -> tuple[Any, list[int]]:
    """What most of the collections contain, by `rank` if several do, and the places of these; no places if they are few."""
    count = Counter(each for one in collections for each in one)
    best = max(count, key=lambda each: (count[each], rank(each)), default=None)
    places = [i for i, one in enumerate(collections) if best in one]
    return best, places if len(places) >= LEAST_SHARE * len(collections) else []


def _likeliness(part: Part, path: Path) -> tuple[object, ...]:
    indexes = sum(type(p) is int for p in part.path)
    return -indexes, part.path[-1:] == path[-1:], -len(part.path), part.step, str(part.path)


def _depth(path: Path) -> int:
    return sum(type(p) is int for p in path[: path.index("*")])


def _spelled(draft: Draft, part: Part, most: int) -> str:
    """A place in a result, for a person."""
    names = [str(p) for p in part.path[:most] if isinstance(p, str)]
    return f"{'.'.join(names)} of {draft.shapes[part.step][0]}" if names else draft.shapes[part.step][0]


def used(expression: Expression | None) -> set[int | str]:
    """The steps and the parameters that an expression uses."""
    match expression:
        case Part():
            return {expression.step}
        case Given():
            return {expression.name}
        case Nested():
            return set[int | str]().union(*(used(part) for _, part in expression.values))
        case Joined():
            return set[int | str]().union(*(used(part) for part in expression.parts if not isinstance(part, str)))
    return set()


def _connected(draft: Draft) -> bool:
    """Whether each step uses an earlier result, or a parameter of an earlier step."""
    known: set[int | str] = set()
    for n, step in enumerate(draft.steps):
        here = used(step.over).union(*map(used, step.arguments.values()))
        if n and not here & known:
            return False
        known |= {n, *(name for name in here if isinstance(name, str))}
    return True
