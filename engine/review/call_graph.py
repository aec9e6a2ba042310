"""The call graph of a saved version: the saved tools and primitives below it, each pinned version once.

A version is a node, however many tools call it. So the graph is as large as the number of versions, while the tree of calls could
be exponentially larger.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from albert_tools.engine.model.definition import Callee, ToolDefinition, ToolVersion
from albert_tools.engine.model.failure import Failure

#: The most nodes of a graph. Callees of further tools are left out.
MAX_NODES = 1_000


class Node(Struct, frozen=True):
    """A tool in the graph. `calls` are indexes of nodes. `problem` says why a tool can't be loaded, or what has changed."""

    name: str
    kind: str
    version: str
    effects: tuple[str, ...] = ()
    state: str = ""
    problem: str = ""
    calls: tuple[int, ...] = ()


class Row(Struct, frozen=True):
    """A row of the graph as a tree. `again` says that the node's callees are in an earlier row."""

    node: Node
    depth: int
    again: bool


def call_graph(
    version: ToolVersion,
    load: Callable[[str, str], ToolVersion],
    primitive: Callable[[str], ToolDefinition | None],
    state: Callable[[ToolVersion], str],
) -> tuple[Node, ...]:
    """The nodes, the version itself first, then the nearest callees.

    Args:
        version: The version.
        load: Loads a saved version by its name and hash. May raise `Failure`.
        primitive: The definition of a primitive, or None.
        state: The state of a saved version, such as ``active``; an empty text if it is not known.
    """
    root = Callee(version.name, "composite", version.version)
    # The keys are in the order of the nodes. The loop adds callees behind the callee that it reads.
    order = {root: 0}
    queue, graph = [root], []
    for callee in queue:
        node, calls = _node(callee, version if callee == root else None, load, primitive, state)
        for called in calls:
            if called not in order and len(order) < MAX_NODES:
                order[called] = len(order)
                queue.append(called)
        graph.append(replace(node, calls=tuple(order[c] for c in calls if c in order)))
    return tuple(graph)


def rows(graph: tuple[Node, ...]) -> list[Row]:
    """The graph as a tree, in the order of a text. The callees of a node are listed once."""
    tree: list[Row] = []
    seen: set[int] = set()
    pending = [(0, 0)]
    while pending:
        index, depth = pending.pop()
        node, again = graph[index], index in seen and bool(graph[index].calls)
        tree.append(Row(node, depth, again))
        if index not in seen:
            seen.add(index)
            pending += [(called, depth + 1) for called in reversed(node.calls)]
    return tree


def _node(
    callee: Callee,
    known: ToolVersion | None,
    load: Callable[[str, str], ToolVersion],
    primitive: Callable[[str], ToolDefinition | None],
    state: Callable[[ToolVersion], str],
) -> tuple[Node, tuple[Callee, ...]]:
    """The node of a callee without its calls, and the calls."""
    node = Node(callee.name, callee.kind, callee.version)
    if callee.kind == "primitive":
        definition = primitive(callee.name)
        if definition is None:
            return replace(node, problem="not available"), ()
        problem = "" if definition.version == callee.version else "has changed since"
        return replace(node, effects=definition.effects, problem=problem), ()
    try:
        version = known or load(callee.name, callee.version)
    except Failure as failure:
        return replace(node, problem=failure.message), ()
    return replace(node, effects=version.definition.effects, state=state(version)), version.calls
