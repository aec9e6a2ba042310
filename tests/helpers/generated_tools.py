"""A catalogue for generated programs: the primitives, and saved tools that are generated as well and call each other."""

from __future__ import annotations

from functools import cache

from msgspec.structs import replace

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import Checked, check_or_raise
from albert_tools.testing import registry
from tests.generators.choices import Choices, RandomChoices
from tests.generators.generated_programs import Program, program
from tests.helpers.harness import FixedCatalog


class GeneratedTools(FixedCatalog):
    """The catalogue. `saved` has the saved tools."""

    def __init__(self) -> None:
        super().__init__([p.definition for p in registry().primitives()])
        self.saved: dict[str, Checked] = {}

    def save(self, name: str, made: Program) -> None:
        """Save a tool with its manifest."""
        checked = check_or_raise(made.source, self)
        manifest = analyse(checked)
        self.saved[name] = checked
        self.definitions[name] = replace(checked.definition, manifest=manifest, version=name)


@cache
def generated_tools(seed: int, count: int = 3) -> GeneratedTools:
    """The primitives and some saved tools. Each can call the ones before it."""
    catalog = GeneratedTools()
    for number in range(count):
        name = f"saved_{number}"
        catalog.save(name, program(RandomChoices(seed * 1000 + number), catalog, name))
    return catalog


def some_program(choices: Choices, catalog: FixedCatalog) -> Program:
    """A program that calls few of the primitives, so that it often calls one twice, and calls saved tools."""
    names = catalog.names()
    primitives = [name for name in names if not name.startswith("saved_")]
    few = [primitives[choices.below(len(primitives))] for _ in range(4)]
    kept = [name for name in names if name in few or name.startswith("saved_")]
    return program(choices, FixedCatalog([catalog.definitions[name] for name in kept]))
