"""A container may grow while a ``for`` statement reads it, and nowhere else, as far as the source shows this.

``for page in pages: pages.append(…)`` is a worklist. The rounds of such a loop are counted, because it may never end
(`growing_loops`). ``xs.extend(f(x) for x in xs)`` and ``xs += map(f, xs)`` read the list while they write to it, and have no
rounds to count, so they are refused. If an alias hides the growth, the program runs until another limit ends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from albert_tools.engine.check.facts import COMPREHENSIONS, Facts
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.rules.lazy_values import consumed_names, lazy
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "grows-while-consumed",
        "A container grows while it is being read, in an expression.",
        "The expression might never end. A `for` statement may read a list that grows, because its rounds are counted.",
        example=in_tool("parts = path.split()\nparts.extend(part for part in parts)\nreturn parts"),
        rewrite=in_tool("parts = path.split()\nparts.extend([part for part in parts])\nreturn parts"),
    ),
)

#: Lazy values by the id of the name that consumes them.
Named = dict[int, tree.Expr]


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each comprehension and each call that consumes an iterator."""
    named = consumed_names(facts)
    for node in facts.every(tree.AugAssign, tree.Call):
        container = _enlarged(node)
        if container is not None:
            for added in node.args if isinstance(node, tree.Call) else (node.value,):
                if lazy(facts, added) and container in _sources(facts, named, added):
                    yield error(
                        "grows-while-consumed",
                        added,
                        f"{_spell(container)} is extended with values that are read from it",
                        hint="read all values first: [f(x) for x in xs]; or write a for statement, which may read a list"
                        " that grows",
                    )
        elif isinstance(node, tree.Call):
            for k in node.keywords:
                if k.arg == "key" and isinstance(k.value, tree.Lambda) and node.args:
                    yield from _refused(facts, named, node.args[0], (k.value.body,))
    for made in facts.every(*COMPREHENSIONS):
        inner = [made.key, made.value] if isinstance(made, tree.DictComp) else [made.elt]
        for g in made.generators:
            yield from _refused(facts, named, g.iter, [*inner, *g.ifs])


def growing_loops(facts: Facts) -> frozenset[int]:
    """The lines of the ``for`` statements that read a container and make it larger."""
    named, loops = consumed_names(facts), facts.every(tree.For)
    return frozenset(loop.span.line for loop in loops if any(_grown(facts, named, loop.iter, loop.body)))


def _sources(facts: Facts, named: Named, node: tree.Expr) -> list[tree.Expr]:
    """The containers that an iteration over `node` reads step by step. Lazy wrappers and views are replaced by their containers."""
    node = named.get(id(node), node)
    match node:
        case tree.Name() | tree.Attribute() | tree.Subscript():
            return [node]
        case tree.Call(func=tree.Attribute(attr="items" | "keys" | "values", value=value), args=()):
            return _sources(facts, named, value)
        case tree.Call(func=tree.Name(id="enumerate" | "zip" | "map" | "filter" | "reversed" | "iter")):
            return [s for a in node.args for s in _sources(facts, named, a)]
        case tree.GeneratorExp():
            return [s for g in node.generators for s in _sources(facts, named, g.iter)]
    return []


def _enlarged(node: tree.Node) -> tree.Expr | None:
    """The container that a node makes larger, or None."""
    match node:
        case tree.Call(func=tree.Attribute(attr=attr, value=container)) if attr in vocabulary.GROWERS:
            return container
        case tree.AugAssign(op="+", target=container):
            return container
    return None


def _grown(
    facts: Facts, named: Named, consumed: tree.Expr, parts: Sequence[tree.Node]
) -> Iterator[tuple[tree.Node, tree.Expr]]:
    """The places in `parts` where a container grows that is read step by step, and the container."""
    sources = {
        s for s in _sources(facts, named, consumed) if not (isinstance(s, tree.Name) and s.id in facts.functions)
    }
    for node in tree.walk(*parts) if sources else ():
        container = _enlarged(node)
        if container is not None and container in sources:
            yield node, container


def _refused(facts: Facts, named: Named, consumed: tree.Expr, parts: Sequence[tree.Node]) -> Iterator[Diagnostic]:
    for node, container in _grown(facts, named, consumed, parts):
        yield error(
            "grows-while-consumed",
            node,
            f"{_spell(container)} grows while it is being consumed",
            hint="write a for statement, which may read a list that grows; or collect into another list",
        )


def _spell(node: tree.Expr) -> str:
    return repr(node.id) if isinstance(node, tree.Name) else "the container"
