"""What the analysis of one function knows about the rest of its source."""

from __future__ import annotations

from collections import defaultdict

from albert_tools.engine.check.facts import Facts, bindings
from albert_tools.engine.check.types.sites import Sites
from albert_tools.engine.check.types.value_types import Site, Type
from albert_tools.engine.check.written import MUTATING_FACADES
from albert_tools.engine.model.definition import Schema
from albert_tools.grammar import tree
from albert_tools.grammar.diagnostic import Diagnostic

#: The types of local names. A name that is not there can be anything.
State = dict[str, Type]


class SourceTypes:
    """One round over a source.

    Attributes:
        facts: The source.
        sites: The containers that can change.
        schema: The schema of the tool's result.
        trusts_tools: Whether the outputs of tools fit their schemas. The stubs of an example need not.
        opaque: The helpers whose parameters can be anything.
        constants: The types of the module's constants.
        results: What each helper returns.
        arguments: The types of the arguments that the calls of a helper give, by helper and parameter.
        excused: For each helper, the exceptions that its callers catch.
        has_walrus: Whether an expression of the source binds a name.
        inner_names: The names of comprehensions and lambdas.
        has_mutators: Whether the source can name a function that changes its arguments.
        displays: The ids of all expressions like ``{"a": 1}``.
        result: What the tool returns.
        found: The findings.
    """

    def __init__(
        self, facts: Facts, changed: frozenset[Site] | None, schema: Schema, opaque: frozenset[str], trusts_tools: bool
    ) -> None:
        self.facts = facts
        self.sites = Sites(changed)
        self.schema = schema
        self.trusts_tools = trusts_tools
        self.opaque = opaque
        self.constants: State = {}
        self.results: dict[str, Type] = {}
        self.arguments: defaultdict[str, defaultdict[str, list[Type]]] = defaultdict(lambda: defaultdict(list))
        self.excused: defaultdict[str, set[str]] = defaultdict(set)
        self.has_walrus = any(True for _ in facts.every(tree.NamedExpr))
        self.inner_names = frozenset(b.name for n in facts.every(tree.Comprehension) for b in bindings(n)) | frozenset(
            p.name for n in facts.every(tree.Lambda) for p in n.params
        )
        used = {*facts.modules.values(), *(module for module, _ in facts.imported.values())}
        self.has_mutators = any(name.partition(".")[0] in used for name in MUTATING_FACADES)
        self.displays = frozenset(id(n) for n in facts.every(tree.Dict))
        self.result: Type = None
        self.found: list[Diagnostic] = []

    def forget_sites(self) -> None:
        """Drop what was found about changes of containers."""
        self.sites = Sites(self.sites.changed)
