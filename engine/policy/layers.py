"""The rules of one file, and what a call touches: what judges are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from albert_tools.engine.model.definition import Category, ToolDefinition
from albert_tools.engine.policy.sections import Section


class Resource(NamedTuple):
    """Something a call touches, by its kind: a ``path`` (absolute), a ``url``, or what `Primitive.judged` names.

    `use` is ``read``, ``write``, ``delete``, or the method of a URL.
    """

    kind: str
    name: str
    use: str


@dataclass(frozen=True, slots=True)
class Layer:
    """The rules of one file. `owner` tells whose: the owner's have the shipped ones under them, a project's only tighten."""

    tools: Mapping[str, Section] = field(default_factory=dict)
    categories: Mapping[Category, Section] = field(default_factory=dict)
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    owner: bool = True
    #: Whether it speaks of gated tools at all; a project's that doesn't leaves them as they are.
    says_allow: bool = True

    @property
    def place(self) -> str:
        """What its rules' ids begin with."""
        return "" if self.owner else "project."

    def sections(self, definition: ToolDefinition) -> list[tuple[str, Section]]:
        """What it says of a tool, each with its place in the file."""
        found = []
        if definition.name in self.tools:
            found.append((f"{self.place}tools.{definition.name}", self.tools[definition.name]))
        # Of a saved tool only its own calls have a category; each of them is judged.
        if definition.kind == "primitive" and definition.category in self.categories:
            found.append((f"{self.place}categories.{definition.category}", self.categories[definition.category]))  # type: ignore[index]
        return found
