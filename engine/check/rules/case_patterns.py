"""Patterns of ``match`` compare with built-in types, literals and constants of modules.

A class pattern is a built-in type without arguments. All alternatives bind the same names. A case that matches everything must be
the last one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts, pattern_bindings
from albert_tools.engine.check.rule import error
from albert_tools.engine.check.rules.assignment import irrefutable
from albert_tools.engine.check.rules.function_values import TYPES
from albert_tools.engine.check.scopes import spelled
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "pattern",
        "A `case` pattern can't mean what it seems to say.",
        "Python would capture a name where a comparison was meant, or would never reach a later case.",
        example=in_tool('match path:\n    case name:\n        return name\n    case "":\n        return None'),
        rewrite=in_tool('match path:\n    case "":\n        return None\n    case name:\n        return name'),
    ),
)


#: The most names that one pattern binds. The time of CPython's compiler grows with the square of their number.
MAX_CAPTURES = 100


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check each pattern."""
    parts = (tree.MatchClass, tree.MatchValue, tree.MatchAs, tree.MatchOr)
    for node in facts.every(*parts, tree.MatchCase, tree.MatchSequence, tree.Match):
        match node:
            case tree.MatchClass():
                if not (isinstance(node.cls, tree.Name) and node.cls.id in TYPES):
                    yield error(
                        "pattern",
                        node,
                        "a class pattern must name a built-in type",
                        hint="case str(): case int(): case list(): case dict(): …",
                    )
            case tree.MatchValue(value=tree.Attribute() as value):
                entry = facts.entry(value)
                if entry is None or entry.kind != "constant":
                    yield error(
                        "pattern",
                        node,
                        "a dotted name in a pattern must be a constant of a module",
                        hint="compare in a guard: case x if x == …:",
                    )
            case tree.MatchAs(pattern=None, name=str() as name) if spelled(name) in facts.constants:
                yield error(
                    "pattern",
                    node,
                    f"{name!r} is captured here, not compared with the constant",
                    hint=f"compare in a guard: case x if x == {spelled(name)}:",
                )
            case tree.MatchOr():
                names = [frozenset(b.name for b in pattern_bindings(p)) for p in node.patterns]
                if len(set(names)) > 1:
                    yield error(
                        "pattern",
                        node,
                        "the alternatives of a pattern bind different names",
                        hint="write a case for each",
                    )
                for p in node.patterns[:-1]:
                    if irrefutable(p):
                        yield error(
                            "pattern",
                            p,
                            "this alternative matches everything, so the ones after it never can",
                            hint="put it last, or leave the others out",
                        )
            case tree.MatchCase():
                seen = Counter(b.name for b in pattern_bindings(node.pattern))
                if len(seen) > MAX_CAPTURES:
                    yield error(
                        "pattern",
                        node.pattern,
                        f"the pattern binds more than {MAX_CAPTURES} names",
                        hint="bind the whole to one name, and take its parts in the body",
                    )
                repeated = sorted(name for name, count in seen.items() if count > 1)
                if repeated and any(isinstance(p, tree.MatchOr) for p in tree.walk(node.pattern)):
                    continue
                for name in repeated:
                    yield error(
                        "pattern",
                        node.pattern,
                        f"the pattern binds {name!r} twice",
                        hint="choose two names and compare them in a guard",
                    )
            case tree.MatchSequence():
                stars = [p for p in node.patterns if isinstance(p, tree.MatchStar)]
                if len(stars) > 1:
                    yield error(
                        "pattern",
                        stars[1],
                        "two starred names in one pattern",
                        hint="match the list and search it with for",
                    )
            case tree.Match():
                for case in node.cases[:-1]:
                    constant = (
                        isinstance(case.pattern, tree.MatchAs) and spelled(case.pattern.name or "") in facts.constants
                    )
                    if case.guard is None and irrefutable(case.pattern) and not constant:
                        yield error(
                            "pattern",
                            case.pattern,
                            "this case matches everything, so the ones after it never can",
                            hint="put it last",
                        )
