"""Finds the drafts in traces, and the order in which they spare the most calls.

Pieces with the same tools and arguments' names are a cluster, of which drafts are made by anti-unification. A draft needs three
sessions, and two people where several use the home. A session within another one counts as that one, so nobody is many by opening
sessions. What a session has done that has seen content from outside supports no draft that does more than read.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from albert_tools.engine.model.definition import Json, ToolDefinition
from albert_tools.engine.suggest.drafts import Draft
from albert_tools.engine.suggest.pieces import Piece, Shape, pieces
from albert_tools.engine.suggest.traces import Traces
from albert_tools.engine.suggest.unify import MAX_COMPARED, NoDraft, Unifier

#: The least sessions behind a draft, and the least people in a home that several use.
MIN_SESSIONS, MIN_PEOPLE = 3, 2
#: The most pieces of one session in a cluster.
MAX_OF_SESSION = 100
#: The most drafts of one cluster with the same loops.
MAX_VARIANTS = 3
#: The tokens around the arguments of one call, and the characters of a token.
FRAME, PER_TOKEN = 20, 4
#: The pieces from which tokens are estimated.
SAMPLE = 100


def of_home(pieces: Iterable[Piece]) -> bool:
    """Whether enough sessions, and people, are behind some pieces."""
    traces = {piece.trace.session: piece.trace for piece in pieces}.values()
    people = {trace.person for trace in traces}
    return len({trace.root for trace in traces}) >= MIN_SESSIONS and (people == {""} or len(people) >= MIN_PEOPLE)


def of_session(pieces: Iterable[Piece]) -> bool:
    """The same for what a session sees of itself and of the sessions within it: each one counts."""
    return len({piece.trace.session for piece in pieces}) >= MIN_SESSIONS


class Miner(Struct, eq=False):
    """The drafts of traces. After traces have grown, only the clusters that have other pieces are compared again."""

    traces: Traces
    supported: Callable[[Iterable[Piece]], bool] = of_home
    _clusters: dict[tuple[Shape, ...], dict[str, list[Piece]]] = field(default_factory=dict)
    _of_session: dict[str, set[tuple[Shape, ...]]] = field(default_factory=dict)
    _drafts: dict[tuple[Shape, ...], list[Draft]] = field(default_factory=dict)
    _outside: set[str] = field(default_factory=set)

    def drafts(self) -> list[Draft]:
        """All drafts, in no order."""
        traces, changed = self.traces, self.traces.changed
        new = traces.outside - self._outside
        dirty = {
            shapes
            for session, keys in self._of_session.items()
            if traces.by_session[session].root in new
            for shapes in keys
        }
        self._outside |= new
        for session in changed:
            for shapes in self._of_session.pop(session, ()):
                del self._clusters[shapes][session]
                dirty.add(shapes)
            for shapes, piece in pieces(traces.by_session[session]):
                session_pieces = self._clusters.setdefault(shapes, {}).setdefault(session, [])
                if len(session_pieces) < MAX_OF_SESSION:
                    session_pieces.append(piece)
                self._of_session.setdefault(session, set()).add(shapes)
                dirty.add(shapes)
        changed.clear()
        for shapes in sorted(dirty):
            self._drafts[shapes] = self._of_cluster(shapes)
        return [draft for shapes in sorted(self._drafts) for draft in self._drafts[shapes]]

    def _of_cluster(self, shapes: tuple[Shape, ...]) -> list[Draft]:
        definitions = {tool: self.traces.definition(tool) for tool, _ in shapes}
        pieces = [piece for each in self._clusters[shapes].values() for piece in each]
        known = {tool: d for tool, d in definitions.items() if d is not None}
        if len(known) < len(definitions):
            return []
        reads = all(d.only_reads for d in known.values())
        if not reads:
            pieces = [piece for piece in pieces if piece.trace.root not in self.traces.outside]
        if not self.supported(pieces):
            return []
        made, before = list[Draft](), self._drafts.get(shapes, [])
        # A loop also explains a single round, so loops come first.
        for loops in sorted({tuple(len(step) > 1 for step in piece.steps) for piece in pieces}, reverse=True):
            if len(shapes) == 1 and not loops[0]:
                continue
            explained = {id(piece) for draft in made for piece in draft.pieces}
            left = [
                p
                for p in pieces
                if id(p) not in explained and all(loop or len(s) == 1 for loop, s in zip(loops, p.steps, strict=True))
            ]
            made += self._variants(Draft(shapes, loops, reads, left, tried=len(pieces)), before, known)
        return made

    def _variants(self, empty: Draft, before: list[Draft], definitions: dict[str, ToolDefinition]) -> list[Draft]:
        """The drafts for the pieces of an empty draft: one for most of them, one for most of the rest, and so on."""
        made, pieces = list[Draft](), empty.pieces
        left = pieces
        for piece in pieces:
            piece.loops = empty.loops
        for _ in range(MAX_VARIANTS):
            if not self.supported(left):
                break
            draft = Draft(empty.shapes, empty.loops, empty.reads, left[:MAX_COMPARED], tried=empty.tried)
            unifier = Unifier(draft, definitions.__getitem__, self.supported)
            try:
                unifier.run()
            except NoDraft:
                if not unifier.rest:
                    break
            else:
                # The same draft as before need not be replayed again on the pieces that it had.
                same = next(
                    (d for d in before if (d.loops, d.steps, d.single) == (draft.loops, draft.steps, draft.single)),
                    None,
                )
                known = {id(piece) for piece in same.pieces} if same is not None else set[int]()
                draft.pieces = [piece for piece in pieces if id(piece) in known or draft.matches(piece)]
                if self.supported(draft.pieces):
                    made.append(draft)
            left = unifier.rest
        return made


def rank(drafts: list[Draft], most: int) -> list[Draft]:
    """The drafts that spare the most calls together: greedily, each one for calls that none before has covered.

    Drafts that only read come first, and flows before mere batches.
    """
    taken: set[tuple[str, int]] = set()
    cells = {id(d): [[(p.trace.session, k) for step in p.steps for k in step] for p in d.pieces] for d in drafts}
    ranking: list[Draft] = []

    def gain(draft: Draft) -> float:
        mine: set[tuple[str, int]] = set()
        spared = 0
        for each in cells[id(draft)]:
            if not any(cell in taken or cell in mine for cell in each):
                mine.update(each)
                spared += len(each) - 1
        return spared - 0.01 * len(draft.parameters)

    for reads, flows in ((True, True), (True, False), (False, True), (False, False)):
        heap = [(-gain(d), i) for i, d in enumerate(drafts) if (d.reads, d.flows > 0) == (reads, flows)]
        heapq.heapify(heap)
        while heap and len(ranking) < most:
            _, i = heapq.heappop(heap)
            now = gain(drafts[i])
            if now < MIN_SESSIONS - 1:
                continue
            if heap and now < -heap[0][0]:
                heapq.heappush(heap, (-now, i))
                continue
            ranking.append(drafts[i])
            for each in cells[id(drafts[i])]:
                if not taken.intersection(each):
                    taken.update(each)
    return ranking


def spared(draft: Draft) -> tuple[int, int]:
    """The calls, and roughly the tokens, that the draft would have spared."""
    sample = draft.pieces[:SAMPLE]
    by_hand = [piece.call(number) for piece in sample for number in piece.place]
    before = sum(FRAME + _tokens([call.tool, call.arguments]) for call in by_hand) / len(sample)
    own = [_tokens(value) / len(p.values[:SAMPLE]) for p in draft.parameters for value in p.values[:SAMPLE]]
    calls = sum(len(piece.place) - 1 for piece in draft.pieces)
    return calls, max(0, round((before - sum(own) - FRAME) * len(draft.pieces)))


def _tokens(value: Json) -> float:
    return len(json.dumps(value)) / PER_TOKEN
