"""One generated program of a seed: checked, run in the sandbox beside CPython, and compared with its manifest.

The manifest is tested in three ways: what the run did must lie inside it; when a parameter is changed, or the answers to one call,
then only what the manifest says may change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import Checked, check
from albert_tools.engine.model.manifest import Manifest
from tests.generators.choices import Choices
from tests.generators.generated_programs import Program
from tests.generators.mutants import mutant
from tests.helpers import containment
from tests.helpers.answers import Answers
from tests.helpers.defined_programs import DefinedPrograms
from tests.helpers.generated_tools import GeneratedTools, some_program
from tests.helpers.recorded_run import Recorded, TooManyCalls, recorded
from tests.helpers.sandbox_run import SandboxRuns, difference

#: Other values of the parameters of generated programs.
_OTHER: dict[str, list[Any]] = {
    "n": [5, 0],
    "s": ["zz/y", "", "a,b c.d"],
    "xs": [[4, -2, 9], []],
    "d": [{"q": 3, "a": 7}, {}],
}


class Found(Exception):
    """What is wrong. `kind` says which property does not hold."""

    def __init__(self, kind: str, problem: str, program: Program) -> None:
        super().__init__(problem)
        self.kind = kind
        self.program = program


def try_program(
    choices: Choices,
    catalog: GeneratedTools,
    seed: int,
    sandbox: SandboxRuns | None,
    with_mistake: bool = False,
    defined: DefinedPrograms | None = None,
) -> bool:
    """Make a program of the choices, and try it. Without a sandbox it is only compared with its manifest.

    Args:
        choices: The choices of the program.
        catalog: The tools that it can call.
        seed: The seed of the answers of tools.
        sandbox: Where it runs.
        with_mistake: Whether it gets one mistake. Then it may be refused, and it may not terminate.
        defined: A service in which it is defined; None to skip this.

    Returns:
        Whether the program was accepted.

    Raises:
        Found: A property does not hold.
    """
    program = some_program(choices, catalog)
    if with_mistake:
        program = Program(mutant(choices, program.source), program.arguments)
    checked = check(program.source, catalog).checked
    if checked is None:
        if with_mistake:
            return False
        raise Found("refused", str(check(program.source, catalog).diagnostics), program)
    problem = None if defined is None else defined.problem(program.source)
    if problem is not None:
        raise Found("not stored as it was defined", problem, program)
    ours = None
    if sandbox is not None:
        ours = sandbox.run(checked, program.arguments, catalog, Answers(seed))
        if ours.failed and ours.outcome[0].endswith("_limit"):
            return True  # a limit ended the run; CPython has none
    theirs = _run(program, catalog, Answers(seed))
    if theirs is None:
        return True
    problem = None if ours is None else difference(ours, theirs, program.source)
    if problem is not None:
        raise Found("differs from CPython", problem, program)
    for kind, problem in manifest_problems(checked, program, catalog, seed, theirs):
        raise Found(kind, problem, program)
    return True


def manifest_problems(
    checked: Checked, program: Program, catalog: GeneratedTools, seed: int, run: Recorded
) -> Iterator[tuple[str, str]]:
    """What a run did that the manifest does not say: kind and sentence."""
    manifest = analyse(checked)
    problem = containment.outside(manifest, run, program.arguments)
    if problem is not None:
        yield "outside the manifest", problem
    before = _run(program, catalog, Answers(seed, steady=True))
    if before is None:
        return
    for source, other, answers in _changes(manifest, program, seed, before):
        after = _run(other, catalog, answers)
        problem = None if after is None else containment.unexplained(manifest, source, before, after)
        if problem is not None:
            yield "a flow that the manifest does not say", problem


def _changes(manifest: Manifest, program: Program, seed: int, run: Recorded) -> Iterator[tuple[str, Program, Answers]]:
    """Runs that differ in one source: the source, the program with its arguments, the answers."""
    for name, values in _OTHER.items():
        for value in values:
            other = Program(program.source, {**program.arguments, name: value})
            yield f"parameter:{name}", other, Answers(seed, steady=True)
    plan = containment.Plan(manifest)
    for place in dict.fromkeys(made.place for made in run.calls):
        numbers = plan.at(place)
        if len(numbers) == 1:
            yield f"call:{numbers[0]}", program, Answers(seed, frozenset([place]), steady=True)


def _run(program: Program, catalog: GeneratedTools, answers: Answers) -> Recorded | None:
    """The run of a program in CPython; None if it has too many calls."""
    try:
        return recorded(program.source, "t", program.arguments, catalog, catalog.saved, answers)
    except TooManyCalls:
        return None
