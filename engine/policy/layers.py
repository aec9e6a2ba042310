"""The rules of one file, its sections, and the resources that a call touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from albert_tools.engine.model.definition import Category, ToolDefinition

#: The rules on one tool or one category: the keys that the file has, lists as tuples. The keys are those of `rule_table.RULES`.
Section = Mapping[str, Any]


class Resource(NamedTuple):
    """Something that a call touches. `kind` is ``path`` (absolute), ``url``, or a kind that `Primitive.judged` names.

    `use` is ``read``, ``write``, ``delete``, or the method of a URL.
    """

    kind: str
    name: str
    use: str


@dataclass(frozen=True, slots=True)
class Layer:
    """The rules of one file: the owner's, which replace the shipped ones, or a project's, which can only tighten."""

    tools: Mapping[str, Section] = field(default_factory=dict)
    categories: Mapping[Category, Section] = field(default_factory=dict)
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    owner: bool = True
    #: Whether the file has the key `allow`. A project's file without it leaves gated tools to the owner.
    says_allow: bool = True

    @property
    def place(self) -> str:
        """The prefix of its rule ids."""
        return "" if self.owner else "project."

    def sections(self, definition: ToolDefinition) -> list[tuple[str, Section]]:
        """Its sections on a tool, each with its place in the file."""
        found = []
        if definition.name in self.tools:
            found.append((f"{self.place}tools.{definition.name}", self.tools[definition.name]))
        # A composite has no category: each of its calls is judged by the category of the tool that it calls.
        if definition.kind == "primitive" and definition.category in self.categories:
            found.append((f"{self.place}categories.{definition.category}", self.categories[definition.category]))  # type: ignore[index]
        return found


def sections_of(layers: Iterable[Layer], definition: ToolDefinition) -> Iterator[tuple[Layer, str, Section]]:
    """All sections on a tool, each with its layer and its place."""
    for layer in layers:
        for place, section in layer.sections(definition):
            yield layer, place, section


def written_at(rule: str) -> str:
    """Where a person writes a rule, for a hint: ``tools.bash.allowed_commands in the owner's governance.yaml``."""
    whose = "the project's .albert/governance.yaml" if rule.startswith("project.") else "the owner's governance.yaml"
    return f"`{rule.removeprefix('project.')}` in {whose}"
