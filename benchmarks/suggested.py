"""How good suggested tools are, on made-up sessions of four domains: drafts of one half are tried on the other half.

- *Edges*: where arguments come from. The generator knows it. Right: of those that drafts state. Found: of those within one turn
  that are no choice of the agent.
- *Covered*, *spared*: calls of unseen sessions that the ten best drafts would have made, and those less one call for each use.
- *Exact*: of the unseen sequences with a draft's tools, those on which a replay makes the same calls.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert_tools import SyncToolService
from albert_tools.engine.model.primitive import Primitive, primitive_from_schema
from albert_tools.engine.suggest.drafts import Draft, Item, Part
from albert_tools.engine.suggest.emitter import name_of, source_of
from albert_tools.engine.suggest.miner import Miner, rank
from albert_tools.engine.suggest.pieces import Piece, pieces
from albert_tools.engine.suggest.traces import Traces
from benchmarks.work_of_agents import TASKS, TOOLS, Record, sessions

SESSIONS, CALLS, BEST = 480, 100_000, 10
SEEDS = (1, 2)


def table() -> list[str]:
    """The lines of the tables."""
    seen, unseen = (sessions(SESSIONS // 2, seed) for seed in SEEDS)
    miner = mined(seen)
    drafts = miner.drafts()
    best = rank(drafts, BEST)
    right, stated, found, all_edges = edges(drafts, seen)
    lines = ["| edges | |", "|---|---:|"]
    lines += [
        f"| stated by drafts, and right | {right:,} of {stated:,} |",
        f"| found | {found:,} of {all_edges:,} |",
        "",
    ]
    lines += ["| unseen sessions | calls | covered | spared | reading drafts alone spare | exact replays |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for domain in (*TASKS, ""):
        calls, covered, spared, exact, tried = cover(best, unseen, domain)
        reading = cover([d for d in best if d.reads], unseen, domain)[2]
        lines.append(
            f"| {domain or 'all'} | {calls:,} | {covered / calls:.0%} | {spared / calls:.0%} | {reading / calls:.0%} "
            f"| {exact:,} of {tried:,} |"
        )
    accepted = sum(accepts(drafts))
    lines += ["", f"`define` accepts {accepted} of {len(drafts)} drafts, each with its example."]
    large = subprocess.run(
        [sys.executable, "-m", "benchmarks.suggested"], capture_output=True, text=True, check=True
    ).stdout.split()
    lines.append(f"{int(large[0]):,} calls: {large[1]} s, {large[2]} MiB; a hundred more: {large[3]} s.")
    lines.append(f"The sources of the arguments of a call, and the values of its result: {large[4]} µs.")
    return lines


def mined(record: Record) -> Miner:
    """A miner that has read a record."""
    traces = Traces(TOOLS.get, lambda session: (session, record.people[session]))
    traces.read(record.entries)
    return Miner(traces)


def edges(drafts: list[Draft], record: Record) -> tuple[int, int, int, int]:
    """How many edges are right, stated, found, and to be found."""
    stated = {edge for draft in drafts for piece in draft.pieces for edge in _stated(draft, piece, record)}
    truth = {(call, path) for call, used in record.used.items() if call not in record.chosen for path in used}
    right = [(call, path) for call, path, thing, _ in stated if record.used[call].get(path) == thing]
    return len(right), len(stated), len({*right} & truth), len(truth)


def _stated(draft: Draft, piece: Piece, record: Record) -> Iterator[tuple[str, str, str, Any]]:
    """The edges that a draft states about one of its pieces: the call, the argument, the thing that the source is, the place."""
    call_of = {number: call for call, number in piece.trace.numbers.items()}
    for n, step in enumerate(draft.steps):
        for i, number in enumerate(piece.steps[n]):
            for name, expression in step.arguments.items():
                match expression:
                    case Part() if "*" not in expression.path:
                        want, step_of, path = name, expression.step, expression.path
                    case Part():
                        star = expression.path.index("*")
                        for k in range(len(piece.value(number, (name,)))):
                            path = (*expression.path[:star], k, *expression.path[star + 1 :])
                            yield _edge(draft, piece, record, call_of, number, f"{name}/{k}", expression.step, path)
                        continue
                    case Item() if isinstance(step.over, Part):
                        want, step_of, path = name, step.over.step, (*step.over.path, i, *expression.path)
                    case _:
                        continue
                yield _edge(draft, piece, record, call_of, number, want, step_of, path)


def _edge(
    draft: Draft, piece: Piece, record: Record, call_of: dict[int, str], number: int, want: str, step: int, path: Any
) -> tuple[str, str, str, Any]:
    if draft.loops[step]:
        source, path = piece.steps[step][path[0]], path[1:]
    else:
        source = piece.steps[step][0]
    return call_of[number], want, record.things[call_of[source]].get(path, "nothing"), (source, path)


def cover(drafts: list[Draft], record: Record, domain: str) -> tuple[int, int, int, int, int]:
    """The calls of unseen sessions, those that drafts cover and spare, and how many sequences of how many are replayed exactly."""
    by_shapes = defaultdict[Any, list[Draft]](list)
    for draft in drafts:
        by_shapes[draft.shapes].append(draft)
    calls = covered = spared = exact = tried = 0
    for trace in mined(record).traces.by_session.values():
        if not any(call.tool.startswith(domain) for call in trace.calls if call.tool != "news"):
            continue
        calls += len(trace.calls)
        taken: set[int] = set()
        found = sorted(pieces(trace), key=lambda each: (-len(each[1].place), each[1].steps))
        for shapes, piece in found:
            for draft in by_shapes.get(shapes, ()):
                if taken & piece.place.keys() or any(
                    len(step) > 1 and not loop for step, loop in zip(piece.steps, draft.loops, strict=True)
                ):
                    continue
                tried += 1
                if draft.matches(piece):
                    exact += 1
                    taken |= piece.place.keys()
                    spared += len(piece.place) - 1
        covered += len(taken)
    return calls, covered, spared, exact, tried


def accepts(drafts: list[Draft]) -> list[bool]:
    """For each draft, whether `define` saves it."""
    found = []
    with tempfile.TemporaryDirectory(prefix="albert-suggested-") as name:
        top = Path(name).resolve()
        (top / "work" / ".albert").mkdir(parents=True)
        with SyncToolService.open(
            home=top / "home", workspace=top / "work", builtins=[], primitives=_primitives()
        ) as service:
            names: list[str] = []
            for draft in drafts:
                names.append(name_of(draft, names))
                source = source_of(draft, names[-1], TOOLS.__getitem__)
                try:
                    service.define(source)
                except Exception as error:
                    print(error, file=sys.stderr)
                    found.append(False)
                else:
                    found.append("@example" in source)
    return found


def _primitives() -> list[Primitive]:
    def done(**_: Any) -> str:
        return "done"

    return [
        primitive_from_schema(tool.name, tool.schema, done, description="Do it.", effects=list(tool.effects))
        for tool in TOOLS.values()
    ]


def _large() -> None:
    """Print the number of calls, seconds, MiB, seconds for a hundred more, and µs of the provenance of one call."""
    record = sessions(10**9, 3, calls=CALLS + 100)
    first, rest = record.entries[:CALLS], record.entries[CALLS:]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    traces = Traces(TOOLS.get, lambda session: (session, record.people[session]))
    traces.read(first)
    miner = Miner(traces)
    rank(miner.drafts(), BEST)
    took = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    traces.read(rest)
    rank(miner.drafts(), BEST)
    again = time.perf_counter() - began
    print(CALLS, f"{took:.1f}", (most - before) // 1024, f"{again:.1f}", f"{_provenance():.1f}")


def _provenance() -> float:
    """µs for a result of six values, and for arguments of which one was in it: the fastest of many blocks."""
    from albert_tools.engine.call.provenance import Provenance

    best = float("inf")
    for _ in range(50):
        found = Provenance()
        results = [
            {
                "id": f"user-{i}",
                "name": {"first": "Mia", "last": f"Li{i}"},
                "zip": "10115",
                "orders": [f"W1-{i}", f"W2-{i}"],
            }
            for i in range(100)
        ]
        began = time.perf_counter()
        for i, result in enumerate(results):
            found.saw("s", "c", result)
            found.sources("s", {"order_id": f"W1-{i}", "reason": "no longer needed"})
        best = min(best, (time.perf_counter() - began) / len(results) * 1e6)
    return best


if __name__ == "__main__":
    _large()
