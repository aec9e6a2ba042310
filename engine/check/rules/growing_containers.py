"""A container must not grow while it is read, as far as the source shows this.

``for x in xs: xs.append(x)`` never ends. The same is true of ``xs.extend(f(x) for x in xs)`` and ``xs += map(f, xs)``, which
read the list while they write to it. If an alias hides the growth, the program runs as in Python until the time limit ends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from albert_tools.engine.check.facts import COMPREHENSIONS, Facts
from albert_tools.engine.check.rule import error, wrap
from albert_tools.engine.check.rules.lazy_values import lazy
from albert_tools.engine.model import vocabulary
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "grows-while-consumed",
        "A container grows while it is being read.",
        "The loop would never end.",
        example=in_tool("parts = path.split()\nfor part in parts:\n    parts.append(part)\nreturn parts"),
        rewrite=in_tool("parts = path.split()\nfor part in list(parts):\n    parts.append(part)\nreturn parts"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each loop, each comprehension and each call that consumes an iterator."""
    for node in facts.every(tree.For, tree.AugAssign, tree.Call):
        match node:
            case tree.For():
                yield from _grown(facts, node.iter, node.body)
            case tree.Call(func=tree.Attribute(attr=attr, value=container)) if attr in vocabulary.GROWERS:
                for arg in node.args:
                    if _lazy_over(facts, arg, container):
                        yield _growing(arg, container)
            case tree.AugAssign(op="+", target=target) if _lazy_over(facts, node.value, target):
                yield _growing(node.value, target)
            case tree.Call():
                for k in node.keywords:
                    if k.arg == "key" and isinstance(k.value, tree.Lambda) and node.args:
                        yield from _grown(facts, node.args[0], (k.value.body,))
    for made in facts.every(*COMPREHENSIONS):
        inner = [made.key, made.value] if isinstance(made, tree.DictComp) else [made.elt]
        for g in made.generators:
            yield from _grown(facts, g.iter, [*inner, *g.ifs])


def _sources(facts: Facts, node: tree.Expr) -> list[tree.Expr]:
    """The containers that an iteration over `node` reads step by step. Lazy wrappers and views are replaced by their containers."""
    match node:
        case tree.Name() | tree.Attribute() | tree.Subscript():
            return [node]
        case tree.Call(func=tree.Attribute(attr="items" | "keys" | "values", value=value), args=()):
            return _sources(facts, value)
        case tree.Call(func=tree.Name(id="enumerate" | "zip" | "map" | "filter" | "reversed" | "iter")):
            return [s for a in node.args for s in _sources(facts, a)]
        case tree.GeneratorExp():
            return [s for g in node.generators for s in _sources(facts, g.iter)]
    return []


def _grown(facts: Facts, consumed: tree.Expr, parts: Sequence[tree.Node]) -> Iterator[Diagnostic]:
    """The places in `parts` where a container grows that is read step by step."""
    sources = {s for s in _sources(facts, consumed) if not (isinstance(s, tree.Name) and s.id in facts.functions)}
    for root in parts if sources else ():
        for node in tree.walk(root):
            match node:
                case tree.Call(func=tree.Attribute(attr=attr, value=container)) if attr in vocabulary.GROWERS:
                    pass
                case tree.AugAssign(op="+", target=container):
                    pass
                case _:
                    continue
            if container in sources and not _leaves(facts, node, root):
                yield error(
                    "grows-while-consumed",
                    node,
                    f"{_spell(container)} grows while it is being consumed",
                    hint="loop over a copy: for x in list(xs), or collect into another list",
                    fix=wrap(consumed, "list(", ")", "loop over a copy"),
                )


def _leaves(facts: Facts, node: tree.Node, root: tree.Node) -> bool:
    """Whether the loop ends soon after the statement: ``xs.append(x); break``."""
    for part in (node, *facts.ancestors(node)):
        if id(part) in facts.before_exits:
            return True
        if part is root:
            break
    return False


def _lazy_over(facts: Facts, node: tree.Expr, container: tree.Expr) -> bool:
    return lazy(facts, node) and any(s == container for s in _sources(facts, node))


def _growing(at: tree.Expr, container: tree.Expr) -> Diagnostic:
    return error(
        "grows-while-consumed",
        at,
        f"{_spell(container)} is extended with values that are read from it",
        hint="make a list first: list(…)",
        fix=wrap(at, "list(", ")", "make a list first"),
    )


def _spell(node: tree.Expr) -> str:
    return repr(node.id) if isinstance(node, tree.Name) else "the container"
