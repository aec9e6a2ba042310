"""Programs can only import modules of the standard library, and only their pure parts."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.check.facts import Facts
from albert_tools.engine.check.rule import error, replace
from albert_tools.engine.check.rules.attributes import INSTEAD, offer
from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.nearest_name import did_you_mean, nearest
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic
from albert_tools.grammar.finding_code import FindingCode, in_tool

CODES = (
    FindingCode(
        "unknown-module",
        "A module is imported that the language does not have.",
        "Programs can compute and call tools; files, processes and the network are reached through tools.",
        example="import os\n\n" + in_tool("return path.upper()"),
        rewrite="import posixpath\n\n" + in_tool("return posixpath.basename(path)"),
    ),
    FindingCode(
        "unknown-import",
        "A name is imported that its module does not offer here.",
        "Only the pure part of each module is in the language.",
        example="from math import square_root\n\n" + in_tool("return path.upper()"),
        rewrite="from math import sqrt\n\n" + in_tool("return sqrt(len(path))"),
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Check every imported module and name."""
    for node in facts.every(tree.Import, tree.ImportFrom):
        if isinstance(node, tree.Import):
            for alias in node.names:
                if alias.name not in vocabulary.MODULES and alias.name != "typing":
                    yield _unknown_module(alias, alias.name)
        else:
            types = vocabulary.ANNOTATION_NAMES.get(node.module, {})
            if node.module not in vocabulary.MODULES and not types:
                for alias in node.names:
                    if f"{node.module}.{alias.name}" not in vocabulary.MODULES:
                        yield _unknown_module(node, node.module)
                        break
                continue
            table = [*vocabulary.facades().get(node.module, ()), *types]
            for alias in node.names:
                if alias.name not in table:
                    near = None if alias.name in INSTEAD else nearest(alias.name, table)
                    yield error(
                        "unknown-import",
                        alias,
                        f"{node.module} has no {alias.name!r} here" + (f"; did you mean {near!r}?" if near else ""),
                        hint=INSTEAD.get(alias.name) or offer(node.module, table),
                        fix=replace(alias, near) if near and not alias.asname else None,
                    )


def _unknown_module(at: tree.Node, name: str) -> Diagnostic:
    instead = vocabulary.INSTEAD.get(name) or vocabulary.INSTEAD.get(name.split(".")[0])
    near = nearest(name, vocabulary.MODULES)
    fix = None
    if near and not instead and isinstance(at, tree.Alias) and not at.asname:
        fix = replace(at, near)
    return error(
        "unknown-module",
        at,
        f"the module {name!r} can't be imported" + ("" if instead else did_you_mean(name, vocabulary.MODULES)),
        hint=instead or f"the modules are {', '.join(sorted(vocabulary.MODULES))}",
        fix=fix,
    )
