"""All rules in force, and their decisions about a call.

There are two layers: the owner's rules, which replace shipped ones, and the project's rules, which can only make them stricter.
All matching rules are applied, and the strictest decision applies. It doesn't matter how specific a rule is: a section on a
category counts as much as a section on a tool.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from albert_tools.engine.model.definition import Mode, ToolDefinition
from albert_tools.engine.policy.decision import Decision, strictest
from albert_tools.engine.policy.flows import FlowJudge
from albert_tools.engine.policy.host_rules import address_rules
from albert_tools.engine.policy.layers import Layer, Resource, sections_of, views, written_at
from albert_tools.engine.policy.mode_rules import permissions
from albert_tools.engine.policy.number_rules import SIZE, TIMEOUT, rate_limits
from albert_tools.engine.policy.operation_rules import ASKING, SHIPPED_ASKING
from albert_tools.engine.policy.path_rules import PathJudge
from albert_tools.engine.policy.rule_table import JUDGES, without_effect
from albert_tools.engine.policy.shipped import MAX_FILE_SIZE_MB

if TYPE_CHECKING:
    from albert_tools.engine.policy.addresses import AddressRules

#: The most tools whose decisions or numbers are cached. If there are more, the cache is cleared.
_MAX_CACHED = 10_000


#: Resources that no rule names by itself, by their kind; and what they are called in a list of tools.
_EXAMPLES: dict[str, tuple[str, list[str]]] = {
    "url": ("new hosts", ["https://new-host.invalid/"]),
    "shell": ("unknown commands", ["unknown-command"]),
    "program": ("unknown commands", ["unknown-command"]),
}


class Numbers(NamedTuple):
    """The numbers that the rules set for one tool: the most seconds of a call (infinite without a rule), the most bytes of a file,
    and the rate limit windows that count a call, each with its calls per hour: ``(("tool:write_file", 100), …)``."""

    timeout: float
    max_file_bytes: int
    rate_limits: tuple[tuple[str, int], ...]


class Policy:
    """All rules in force for one workspace. Immutable, and safe to use from any thread."""

    def __init__(self, layers: tuple[Layer, ...], workspace: str, home: str) -> None:
        self.layers = layers
        self.paths = PathJudge(layers, workspace, home)
        self.flows = FlowJudge(layers, workspace, home)
        own = next((layer for layer in layers if layer.owner), Layer())
        #: The hosts of each secret, and the owner's settings of primitives.
        self.secrets, self.settings = own.secrets, own.primitives
        self._permits: dict[tuple[str, str, bool, Mode], Decision] = {}
        self._numbers: dict[tuple[str, str], Numbers] = {}
        self._address_rules: dict[tuple[str, str], AddressRules] = {}

    def permits(self, definition: ToolDefinition, gated: bool, mode: Mode) -> Decision:
        """The decision that applies to every call of a tool in a mode, independent of its arguments."""
        key = definition.name, definition.version, gated, mode
        decision = self._permits.get(key)
        if decision is None:
            if len(self._permits) > _MAX_CACHED:
                self._permits.clear()
            judged = permissions(self.layers, definition, gated, mode)
            decision = self._permits[key] = strictest([*judged, *self._mistakes(definition)])
        return decision

    def _mistakes(self, definition: ToolDefinition) -> Iterator[Decision]:
        """A denial for each rule on a tool that can't have an effect. Its author may have meant a limit."""
        for layer in self.layers:
            for key, message in without_effect(definition, layer.tools.get(definition.name, {})):
                rule = f"{layer.place}tools.{definition.name}.{key}"
                hint = "correct it; `albert policy check` lists all mistakes"
                yield Decision("deny", rule, "denied", f"a mistake at {written_at(rule)}: {message}", hint)

    def touches(self, definition: ToolDefinition, resources: list[Resource]) -> list[Decision]:
        """The denials and questions about the resources of a call; empty if no rule objects."""
        decisions = []
        for resource in resources:
            if resource.kind == "path":
                decisions.append(self.paths.of(definition).judge(resource.name, resource.use))
            else:
                judge = JUDGES[resource.kind]
                decisions += [judge(self.layers, view, resource) for view in views(self.layers, definition)]
        return [decision for decision in decisions if decision is not None]

    def may_ask(self, definition: ToolDefinition, kinds: Collection[str]) -> list[str]:
        """What a person is still asked about if every call of a tool is allowed: ``new hosts``, …

        `kinds` are the kinds of resources that its calls name.
        """
        operations = {op for _, _, s in sections_of(self.layers, definition) for op in ASKING.of(s) or ()}
        operations.update(SHIPPED_ASKING.get(definition.name, ()))
        examples = {**_EXAMPLES, "operation": ("some operations", sorted(operations))}
        topics = []
        for kind in kinds:
            said, names = examples.get(kind, ("", []))
            resources = [Resource(kind, name, "GET" if kind == "url" else "") for name in names]
            if any(d.verdict == "ask" for r in resources for d in self.touches(definition, [r])):
                topics.append(said)
        return topics

    def address_rules(self, definition: ToolDefinition) -> AddressRules:
        """The rules on the addresses that a tool reaches."""
        key = definition.name, definition.category
        rules = self._address_rules.get(key)
        if rules is None:
            rules = self._address_rules[key] = address_rules(self.layers, definition)
        return rules

    def numbers(self, definition: ToolDefinition) -> Numbers:
        """The numbers that apply to a tool. Every call needs them, so they are cached."""
        key = definition.name, definition.version
        numbers = self._numbers.get(key)
        if numbers is None:
            if len(self._numbers) > _MAX_CACHED:
                self._numbers.clear()
            numbers = self._numbers[key] = Numbers(
                TIMEOUT.lowest(self.layers, definition, math.inf),
                int(SIZE.lowest(self.layers, definition, MAX_FILE_SIZE_MB) * 1024 * 1024),
                tuple(rate_limits(self.layers, definition).items()),
            )
        return numbers
