"""The structure of a rule kind: its keys in a section, their syntax, the functions that apply them, and their lint.

Each kind is declared in one module, ``…_rules.py``, and listed in `rule_table`. The reader of rules files, the policy, lint and
the table in `docs/governance.md` use this list. A new rule on a kind of resource needs its module, its tests, its entry in the
list and its row in the page. A new rule on the whole call also needs a method in `rules`, and a caller of this method.

All layers and all sections on a tool apply together. A call must satisfy every list, and the lowest of several numbers applies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from albert_tools.engine.model.definition import Effect, ToolDefinition
from albert_tools.engine.policy.decision import Decision, Rationale
from albert_tools.engine.policy.layers import Layer, Resource, Section, rule_id, sections_of, views, written_at

#: The most names that a denial lists.
_MAX_SHOWN = 20


class ListKey(NamedTuple):
    """A key whose value is a list of texts.

    `read` returns the normal form of one text; for an invalid text, it raises `ValueError` with the reason. `example` is a value
    in YAML. `meaning` completes the row of the key in `docs/governance.md`.
    """

    name: str
    read: Callable[[str], str]
    max_length: int
    example: str
    meaning: str

    def of(self, section: Section) -> tuple[str, ...] | None:
        """The list in a section; None if the key is missing. A missing key differs from an empty list."""
        return section.get(self.name)


class NumberKey(NamedTuple):
    """A key whose value is a number: more than `above` or at least `least`, and at most `most`. The lowest of all sections
    applies."""

    name: str
    type: type[int] | type[float]
    most: float
    example: str
    meaning: str
    least: float | None = None
    above: float | None = None

    def of(self, section: Section) -> float | None:
        """The number in a section; None if the key is missing."""
        return section.get(self.name)

    def lowest(self, layers: tuple[Layer, ...], definition: ToolDefinition, default: float) -> float:
        """The lowest number in all sections that apply to a tool; `default` if no section has the key."""
        numbers = (self.of(s) for view in views(layers, definition) for _, _, s in sections_of(layers, view))
        return min((number for number in numbers if number is not None), default=default)


class CategoryKey(NamedTuple):
    """The key of a tool's section whose value is a category. `layers.views` applies it."""

    name: str
    example: str
    meaning: str

    def of(self, section: Section) -> str | None:
        """The category in a section; None if the key is missing."""
        return section.get(self.name)


Key = ListKey | NumberKey | CategoryKey

#: Decides about one resource by the layers; None if no rule objects.
Judge = Callable[[tuple[Layer, ...], ToolDefinition, Resource], Decision | None]


class Examined(NamedTuple):
    """One section that lint checks: the section `name` in `layer`, under `tools` or `categories` (`group`). The section at the top
    of the file has neither a group nor a name.

    `tools` are the primitives that it applies to. `workspace` and `home` are absolute paths, or empty if unknown.
    """

    layers: tuple[Layer, ...]
    layer: Layer
    group: str
    name: str
    section: Section
    tools: Sequence[ToolDefinition]
    workspace: str = ""
    home: str = ""
    #: The most seconds of a call, by `limits`.
    call_seconds: float = math.inf

    @property
    def place(self) -> str:
        """The place of the section in the file."""
        return f"{self.layer.place}{self.group}.{self.name}".rstrip(".")


#: The effects of tools that touch files, and the uses of their paths.
FILE_USES: frozenset[Any] = frozenset({"read", "write", "delete"})

#: The place of a rule that has no effect or an unexpected one, and the reason.
Finding = tuple[str, str]


def _no_findings(examined: Examined) -> Iterator[Finding]:
    return iter(())


class RuleKind(NamedTuple):
    """A group of keys that belong together.

    Attributes:
        keys: The keys.
        judges: The functions that decide by these keys, by the kind of resource.
        effects, uses: The keys apply only to tools with one of these effects, or with an argument of one of these uses. If both are
            empty, they apply to all tools.
        not_for: What other tools don't do, in the words of lint: ``touches no files``.
        for_composites: Whether the keys apply to the call of a composite itself, and not only to the calls inside it.
        lint: Finds keys that have no effect or an unexpected one.
    """

    keys: tuple[Key, ...]
    judges: Mapping[str, Judge] = MappingProxyType({})
    effects: frozenset[Effect] = frozenset()
    not_for: str = ""
    for_composites: bool = False
    lint: Callable[[Examined], Iterator[Finding]] = _no_findings
    uses: frozenset[str] = frozenset()

    def concerns(self, definition: ToolDefinition) -> bool:
        """Whether the keys apply to a tool."""
        applies_to_all = not self.effects and not self.uses
        has_effect = not self.effects.isdisjoint(definition.effects)
        return applies_to_all or has_effect or not self.uses.isdisjoint(definition.declared.uses.values())


class NameRule(NamedTuple):
    """Lists of names that a tool may use: hosts, methods, operations, providers, models. `fits` compares a name with an entry."""

    noun: Rationale
    fits: Callable[[str, str], bool]
    allowed: ListKey
    asking: ListKey | None = None
    forbidden: ListKey | None = None

    def judge(self, layers: tuple[Layer, ...], definition: ToolDefinition, name: str) -> Decision | None:
        """The first denial of all lists, or else the first question; None if all lists permit the name."""
        asks = None
        for _, place, section in sections_of(layers, definition):
            shown = f"the {self.noun} {name[:256]!r}"
            if self.forbidden is not None and self._has(self.forbidden.of(section), name):
                rule = rule_id(place, self.forbidden.name)
                message = f"{shown} is forbidden to {definition.name}"
                return Decision("deny", rule, self.noun, message, f"{written_at(rule)} lists it; do without it")
            allowed = self.allowed.of(section)
            if allowed is not None and not self._has(allowed, name):
                rule = f"{place}.{self.allowed.name}"
                among = ", ".join(allowed[:_MAX_SHOWN]) or "none"
                message = f"{shown} is not among those that {definition.name} may use: {among}"
                hint = f"use one of these, or ask for it to be added to {written_at(rule)}"
                return Decision("deny", rule, self.noun, message, hint)
            if asks is None and self.asking is not None and self._has(self.asking.of(section), name):
                asks = self.question(definition, name, f"{place}.{self.asking.name}")
        return asks

    def judge_resource(
        self, layers: tuple[Layer, ...], definition: ToolDefinition, resource: Resource
    ) -> Decision | None:
        """Like `judge`, for the name of a resource."""
        return self.judge(layers, definition, resource.name)

    def question(self, definition: ToolDefinition, name: str, rule: str) -> Decision:
        """The *ask* decision for a name that needs approval."""
        message = f"{definition.name} needs a person's approval for {name!r}"
        return Decision("ask", rule, "approval_required", message)

    def owner_lists(self, layers: tuple[Layer, ...], definition: ToolDefinition) -> bool:
        """Whether the owner's rules list the allowed names. A project's list doesn't count, because it can only restrict."""
        sections = sections_of(layers, definition)
        return any(layer.owner and self.allowed.of(section) is not None for layer, _, section in sections)

    def _has(self, entries: Sequence[str] | None, name: str) -> bool:
        return any(self.fits(name, entry) for entry in entries or ())


def word(what: str, example: str, extra: str = "") -> Callable[[str], str]:
    """Returns a reader for a word of letters and the characters in `extra`. The reader returns the word in upper case."""

    def read(text: str) -> str:
        letters = text.translate(str.maketrans("", "", extra))
        if not letters.isascii() or not letters.isalpha():
            raise ValueError(f"{what} is a word such as {example}")
        return text.upper()

    return read


def nonempty(what: str) -> Callable[[str], str]:
    """Returns a reader for a text that isn't empty."""

    def read(text: str) -> str:
        if not text.strip():
            raise ValueError(f"{what} can't be empty")
        return text

    return read


def same_word(name: str, entry: str) -> bool:
    """Whether a name is the word of an entry, in any case."""
    return name.upper() == entry
