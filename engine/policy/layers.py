"""The rules of one file, its sections, and the resources that a call uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from albert_tools.engine.model.definition import Category, ToolDefinition
from albert_tools.engine.policy.flow_rules import FlowRule

#: The rules on one tool or one category. It contains the keys of the file, out of `rule_table.KEYS`. Lists are tuples.
Section = Mapping[str, Any]


class Resource(NamedTuple):
    """Something that a call uses. `kind` is ``path`` (absolute), ``url``, or a kind that `Primitive.judged` names.

    `use` is ``read``, ``write``, ``delete``, the method of a URL, the folder in which a command starts, as records name it, or the
    arguments of an operation, quoted as for a shell. `root` is the workspace of a command. `words` are a program and its
    arguments, if `name` need not be split into them.
    """

    kind: str
    name: str
    use: str
    root: str = ""
    words: tuple[str, ...] = ()


class Layer(Struct, frozen=True):
    """The rules of one file. The owner's rules replace the shipped ones. A project's rules can only make them stricter."""

    tools: Mapping[str, Section] = field(default_factory=dict)
    categories: Mapping[Category, Section] = field(default_factory=dict)
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    owner: bool = True
    #: Whether the file has the key `allow`. If a project's file has no such key, the owner decides about gated tools.
    says_allow: bool = True
    #: The rules at the top of the file, which apply to every tool.
    everywhere: Section = field(default_factory=dict)
    #: The rules about flows, and the patterns of files with private data.
    flows: tuple[FlowRule, ...] = ()
    private_paths: tuple[str, ...] = ()
    #: The hosts of each secret, and the settings of primitives. Empty for a project's file.
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    primitives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The prefix of its rule ids."""
        return "" if self.owner else "project."

    def sections(self, definition: ToolDefinition) -> list[tuple[str, Section]]:
        """The sections of this file that apply to a tool, each with its place in the file."""
        sections = [(self.place.rstrip("."), self.everywhere)] if self.everywhere else []
        if definition.name in self.tools:
            sections.append((f"{self.place}tools.{definition.name}", self.tools[definition.name]))
        # A composite has no category. Each of its calls is authorized by the category of the called tool.
        if definition.kind == "primitive" and definition.category in self.categories:
            sections.append((f"{self.place}categories.{definition.category}", self.categories[definition.category]))  # type: ignore[index]
        return sections


def views(layers: Iterable[Layer], definition: ToolDefinition) -> tuple[ToolDefinition, ...]:
    """The definition, and copies of it in the categories that the sections on the tool name. All of them are judged, so naming a
    category can only make the rules stricter."""
    named = {layer.tools.get(definition.name, {}).get("category", definition.category) for layer in layers}
    return (definition, *(replace(definition, category=c) for c in sorted(named - {definition.category})))


def sections_of(layers: Iterable[Layer], definition: ToolDefinition) -> Iterator[tuple[Layer, str, Section]]:
    """All sections that apply to a tool, each with its layer and its place."""
    for layer in layers:
        for place, section in layer.sections(definition):
            yield layer, place, section


def rule_id(place: str, key: str) -> str:
    """The id of a rule: the place of its section and its key. The place of the rules at the top of the owner's file is empty."""
    return f"{place}.{key}".lstrip(".")


def written_at(rule: str) -> str:
    """Where the rule is written, for a hint: ``tools.bash.allowed_commands in the owner's governance.yaml``."""
    whose = "the project's .albert/governance.yaml" if rule.startswith("project.") else "the owner's governance.yaml"
    return f"`{rule.removeprefix('project.')}` in {whose}"
