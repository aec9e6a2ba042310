"""All kinds of rules that a section can have."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy import host_rules, number_rules, path_rules
from albert_tools.engine.policy.command_rules import COMMANDS
from albert_tools.engine.policy.host_rules import HOSTS
from albert_tools.engine.policy.layers import Section
from albert_tools.engine.policy.mode_rules import MODE_RULES
from albert_tools.engine.policy.model_rules import INFERENCE
from albert_tools.engine.policy.number_rules import SIZES, TIMES_AND_RATES
from albert_tools.engine.policy.operation_rules import OPERATIONS, unknown_operations
from albert_tools.engine.policy.path_rules import PATHS

#: In the order of `docs/governance.md`.
RULES = (MODE_RULES, PATHS, SIZES, HOSTS, COMMANDS, OPERATIONS, INFERENCE, TIMES_AND_RATES)

KEYS = tuple(key for kind in RULES for key in kind.keys)

#: The keys that the top of a file can have too. They apply to every tool, or to the calls of all tools together.
EVERYWHERE = (path_rules.FORBIDDEN, path_rules.WRITABLE, host_rules.FORBIDDEN, host_rules.FREE, number_rules.RATE)

#: The function that decides about a resource, by its kind. `PathJudge` decides about paths, because it needs an index.
JUDGES = {resource: judge for kind in RULES for resource, judge in kind.judges.items()}


def without_effect(definition: ToolDefinition, section: Section) -> Iterator[tuple[str, str]]:
    """The keys of a section on a tool that say nothing about its calls, and those that list an operation that it doesn't have; each
    with a message."""
    for kind in RULES:
        keys = [key.name for key in kind.keys if key.name in section]
        if keys and definition.kind == "composite" and not kind.for_composites:
            yield (
                keys[0],
                f"{definition.name} is a saved tool; write this key under the tools that {definition.name} calls",
            )
        elif keys and not kind.concerns(definition):
            yield from ((key, f"{definition.name} {kind.not_for}") for key in keys)
    yield from unknown_operations(definition.name, [definition], section)
