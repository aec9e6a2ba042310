"""The pieces of a trace that can become a draft: a few neighbouring groups of calls that hang together, within one turn.

Adjacent calls of one tool with the same arguments' names are a *group*, because they can be the rounds of a loop. A piece is a
group of several calls, 2 to 6 neighbouring groups, or a group and those from which its arguments come, directly or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from albert_tools.engine.model.definition import Json
from albert_tools.engine.suggest.traces import Path, Source, Trace, TracedCall, at, bits, comparable, parsed

#: The most neighbouring groups, and the most groups of a piece.
MAX_NEIGHBOURS, MAX_GROUPS = 6, 8
#: Instead of more groups than a piece can have.
_TOO_MANY = {*range(-1 - MAX_GROUPS, 0)}
#: The information of a value in bits, from which on its equality says something.
TELLING = 10.0
#: A tool and the names of the arguments of its calls.
Shape = tuple[str, tuple[str, ...]]


class Piece(Struct, eq=False):
    """Groups of calls of a trace, as the steps of a draft. `loops` says which steps are loops, also over a single item."""

    trace: Trace
    steps: tuple[tuple[int, ...], ...]
    loops: tuple[bool, ...] = ()
    #: The step and the round of each call.
    place: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.place = {k: (n, i) for n, step in enumerate(self.steps) for i, k in enumerate(step)}

    def call(self, number: int) -> TracedCall:
        """A call of the trace."""
        return self.trace.calls[number]

    def value(self, number: int, path: Path) -> Json:
        """An argument of a call, or a part of it."""
        return at(self.trace.calls[number].arguments, path)

    def sources(self, number: int, path: str, before: int) -> Iterator[Source]:
        """The sources of an argument in the results of the steps before one, as `Source` with the step's number instead of the
        call's. The result of a loop is the list of its rounds' results."""
        for source in self.trace.calls[number].sources.get(path, ()):
            step, i = self.place.get(source.call, (before, 0))
            if step < before and self.loops[step]:
                yield Source(step, (i, *source.path), (len(self.steps[step]), *source.lengths))
            elif step < before:
                yield Source(step, source.path, source.lengths)

    def is_chosen(self, number: int, path: Path) -> bool:
        """Whether an argument was first seen in a result of this piece, so that no caller can know it beforehand."""
        name = "/".join(map(str, path))
        for source_name, sources in self.trace.calls[number].sources.items():
            whole, _, part = source_name.partition("~")
            if (whole == name or whole.startswith(f"{name}/")) and sources[0].call in self.place:
                if part or bits(at(self.trace.calls[number].arguments, parsed(whole))) >= TELLING:
                    return True
        return False


def shape(call: TracedCall) -> Shape:
    """See `Shape`."""
    return call.tool, tuple(sorted(call.arguments))


def pieces(trace: Trace) -> Iterator[tuple[tuple[Shape, ...], Piece]]:
    """The pieces of a trace, each with the shapes of its steps."""
    groups = _groups(trace)
    linked, flows = _links(trace, groups)
    combinations: set[tuple[int, ...]] = set()
    reach: list[set[int]] = []
    for i, group in enumerate(groups):
        if len(group) > 1:
            combinations.add((i,))
        for j in range(i + 1, min(len(groups), i + MAX_NEIGHBOURS)):
            if not any(i <= k < j for k in linked[j]):
                break
            combinations.add(tuple(range(i, j + 1)))
        reach.append({i}.union(*(reach[j] for j in flows[i])))
        if len(reach[i]) > MAX_GROUPS:
            reach[i] = _TOO_MANY
        elif len(reach[i]) > 1:
            combinations.add(tuple(sorted(reach[i])))
    for piece in sorted(combinations):
        steps = tuple(groups[i] for i in piece)
        yield tuple(shape(trace.calls[step[0]]) for step in steps), Piece(trace, steps)


def _groups(trace: Trace) -> list[tuple[int, ...]]:
    groups: list[list[int]] = []
    before: Any = None
    for number, call in enumerate(trace.calls):
        here = (call.turn, *shape(call))
        if here == before:
            groups[-1].append(number)
        else:
            groups.append([number])
        before = here
    return [tuple(group) for group in groups]


def _links(trace: Trace, groups: list[tuple[int, ...]]) -> tuple[list[set[int]], list[set[int]]]:
    """For each group, the earlier groups of its turn with which it shares a value or from which it has one; and for the latter
    alone, the likeliest one for each value."""
    group_of = {number: i for i, group in enumerate(groups) for number in group}
    linked: list[set[int]] = []
    flows: list[set[int]] = []
    users: dict[Any, list[int]] = {}
    turn = -1
    for i, group in enumerate(groups):
        if trace.calls[group[0]].turn != turn:
            turn, users = trace.calls[group[0]].turn, {}
        links, flow = set[int](), set[int]()
        for number in group[:20]:
            call = trace.calls[number]
            for path, sources in call.sources.items():
                near = [s for s in sources if s.call >= 0 and group_of[s.call] < i and trace.calls[s.call].turn == turn]
                links.update(group_of[s.call] for s in near)
                if near:
                    name = path.rpartition("/")[2]
                    likeliest = max(near, key=lambda s: (bool(s.path) and s.path[-1] == name, s.call))
                    flow.add(group_of[likeliest.call])
            for value in call.arguments.values():
                if bits(value) >= TELLING:
                    known = users.get(comparable(value), [])
                    links.update(known)
                    # Only neighbours can become a piece by a shared value.
                    users[comparable(value)] = [*(j for j in known if i - MAX_NEIGHBOURS < j < i), i]
        linked.append(links - {i})
        flows.append(flow)
    return linked, flows
