"""Draws the call graph of a tool as SVG: callers left, callees right, each with an arrow from every caller."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from albert_tools.engine.review.call_graph import Node
from albert_tools.surfaces.web.visible import plain

#: Boxes that are drawn. Of a larger graph nobody sees more from a drawing.
MAX_BOXES = 60
#: Sizes in pixels: of a character, a box, and the gaps between boxes.
_CHARACTER, _HEIGHT, _PAD, _GAP_X, _GAP_Y = 8.0, 26.0, 10.0, 56.0, 10.0
#: Characters of a name that are shown.
_LONGEST = 40

_SVG = Markup(
    '<svg class="graph" role="img" aria-label="{}" width="{}" height="{}" viewBox="0 0 {} {}">'
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8z" class="head"/></marker></defs>{}</svg>'
)
_BOX = Markup('<g class="{}"><rect x="{}" y="{}" width="{}" height="{}" rx="5"/><text x="{}" y="{}">{}</text></g>')
_EDGE = Markup('<path class="edge" marker-end="url(#arrow)" d="M{} {}C{} {} {} {} {} {}"/>')


def graph_svg(graph: Sequence[Node]) -> Markup:
    """The drawing of the first `MAX_BOXES` nodes. A callee stands behind its callers, as in the result of `call_graph`."""
    nodes = graph[:MAX_BOXES]
    edges = [(i, callee) for i, node in enumerate(nodes) for callee in node.calls if callee < len(nodes)]
    columns = _columns(len(nodes), edges)
    left, wide, high = 1.0, 0.0, 0.0
    places: dict[int, tuple[float, float, float]] = {}
    for column in columns:
        width = max(len(_label(nodes[i])) for i in column) * _CHARACTER + 2 * _PAD
        places |= {i: (left, 1 + row * (_HEIGHT + _GAP_Y), width) for row, i in enumerate(column)}
        wide, high = left + width + 1, max(high, len(column) * (_HEIGHT + _GAP_Y) - _GAP_Y + 2)
        left += width + _GAP_X
    drawn = [_edge(places[caller], places[callee]) for caller, callee in edges]
    drawn += [_box(node, places[i]) for i, node in enumerate(nodes)]
    words = "; ".join(f"{plain(nodes[caller].name)} calls {plain(nodes[callee].name)}" for caller, callee in edges)
    return _SVG.format(words, wide, high, wide, high, Markup("").join(drawn))


def _columns(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The nodes of each column. A node's column is behind those of all its callers."""
    column = [0] * count
    for caller, callee in edges:
        column[callee] = max(column[callee], column[caller] + 1)
    nodes_by_column: list[list[int]] = [[] for _ in range(max(column, default=-1) + 1)]
    for i, at in enumerate(column):
        nodes_by_column[at].append(i)
    return nodes_by_column


def _label(node: Node) -> str:
    name = str(plain(node.name))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _edge(start: tuple[float, float, float], end: tuple[float, float, float]) -> Markup:
    x, y = start[0] + start[2], start[1] + _HEIGHT / 2
    to, down = end[0], end[1] + _HEIGHT / 2
    bend = _GAP_X / 2
    return _EDGE.format(x, y, x + bend, y, to - bend, down, to, down)


def _box(node: Node, place: tuple[float, float, float]) -> Markup:
    x, y, width = place
    risky = {"network", "execute", "delete", "secret"} & set(node.effects)
    kind = "risky" if risky else "changing" if "write" in node.effects else "calm"
    return _BOX.format(kind, x, y, width, _HEIGHT, x + _PAD, y + 17, _label(node))
