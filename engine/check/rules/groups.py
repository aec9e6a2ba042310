"""`itertools.groupby` is used in a loop, and each group is consumed before the loop goes on.

``for key, group in groupby(rows, key=…):`` and comprehensions of this form are accepted. All groups read the same iterator, so a
group is empty when the next one begins. Therefore a group is only named where it is consumed (``list(group)``), up to a statement
that binds its name again (``group = list(group)``), and not in a body of `parallel`, which may run later."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import COMPREHENSIONS, Facts, bindings, called_name, targets
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.rules.lazy_values import consumed
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "group-value",
        "A group of `groupby` is kept instead of being consumed in its round of the loop.",
        "All groups read the same iterator, so a group is empty when the next one begins.",
        example="from itertools import groupby\n\n" + in_tool("return [group for key, group in groupby(path)]"),
        rewrite="from itertools import groupby\n\n" + in_tool("return [list(group) for key, group in groupby(path)]"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every call of `groupby`, and every use of its groups."""
    for call in facts.every(tree.Call):
        if facts.facade(call.func) != ("itertools", "groupby"):
            continue
        match facts.parent(call):
            case (
                tree.For(target=tree.Tuple(elts=(_, tree.Name() as group)), iter=read)
                | tree.Comprehension(target=tree.Tuple(elts=(_, tree.Name() as group)), iter=read)
            ) as loop if read is call:
                yield from _group(facts, loop, group.id)
            case _:
                yield error(
                    "group-value",
                    call,
                    "groupby(…) is lazy, and its groups end with the next one",
                    hint="write for key, group in groupby(…): and consume each group there; or"
                    " [(key, list(group)) for key, group in groupby(…)]",
                )


def _group(facts: Facts, loop: tree.For | tree.Comprehension, group: str) -> Iterator[Diagnostic]:
    """Check every use of the groups of a loop. `group` is their name."""
    scope = facts.parent(loop) if isinstance(loop, tree.Comprehension) else facts.function_of(loop)
    for name in tree.walk(scope) if scope is not None else ():
        captured = group in facts.scopes.captured
        if isinstance(name, tree.Name) and name.id == group and (captured or _leaks(facts, name, loop)):
            yield error(
                "group-value",
                name,
                f"{group!r} is a group of groupby(…), which must be consumed in its own round of the loop",
                hint=f"write list({group})",
            )


def _leaks(facts: Facts, name: tree.Name, loop: tree.For | tree.Comprehension) -> bool:
    """Whether a name is read where it means a group, and is not consumed there."""
    below: tree.Node = name
    for above in facts.ancestors(name):
        if called_name(above) == "parallel":
            return True
        if above is loop or (isinstance(above, COMPREHENSIONS) and any(g is loop for g in above.generators)):
            if called_name(facts.parent(above)) == "parallel":
                return not _bound(facts, name)
            if isinstance(above, tree.For):
                body = next((i for i, stmt in enumerate(above.body) if stmt is below), len(above.body))
                if any(_binds(stmt, name.id) for stmt in above.body[:body]):
                    return False
            break
        binders = above.generators if isinstance(above, COMPREHENSIONS) else (above,)
        if any(_binds(b, name.id) for b in binders if isinstance(b, tree.For | tree.Comprehension)):
            return False  # another loop binds the name
        below = above
    return not _bound(facts, name) and not consumed(facts, name)


def _binds(node: tree.Node, name: str) -> bool:
    return any(b.name == name for b in bindings(node))


def _bound(facts: Facts, name: tree.Name) -> bool:
    """Whether the name is a target here, and not read."""
    above = next(a for a in facts.ancestors(name) if not isinstance(a, tree.Tuple | tree.List | tree.Starred))
    return not isinstance(above, tree.AugAssign | tree.Delete) and any(t is name for t in targets(above))
