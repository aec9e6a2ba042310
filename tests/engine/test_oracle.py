"""Fuzzing the back end: generated programs have the same result in the sandbox and in CPython, for any answers of tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from albert_tools.engine.check.checker import check, check_or_raise
from albert_tools.engine.model.error_codes import ENDING
from albert_tools.engine.model.limits import MiB, RunLimits
from tests.generators import strategies
from tests.generators.mutants import mutant
from tests.helpers.answers import Answers
from tests.helpers.effort import examples
from tests.helpers.generated_tools import generated_tools, some_program
from tests.helpers.recorded_run import Recorded, recorded
from tests.helpers.sandbox_run import SandboxRuns, difference

CATALOG = generated_tools(0)


@st.composite
def programs(draw: strategies.Draw) -> strategies.Program:
    """Programs that call primitives and generated tools."""
    return some_program(strategies.Drawn(draw), CATALOG)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxRuns]:
    runs = SandboxRuns()
    yield runs
    runs.close()


def in_cpython(source: str, arguments: dict[str, Any], seed: int) -> Recorded:
    return recorded(source, "t", arguments, CATALOG, CATALOG.saved, Answers(seed))


def agree(program: strategies.Program, seed: int, sandbox: SandboxRuns) -> None:
    checked = check_or_raise(program.source, CATALOG)
    ours = sandbox.run(checked, program.arguments, CATALOG, Answers(seed))
    if not ours.failed or ours.outcome[0] not in ENDING:
        theirs = in_cpython(program.source, program.arguments, seed)
        assert difference(ours, theirs, program.source) is None, program.source


@examples(25)
@given(programs(), st.integers(0, 7))
def test_programs_agree_with_cpython(sandbox: SandboxRuns, program: strategies.Program, seed: int) -> None:
    agree(program, seed, sandbox)


@st.composite
def mutants(draw: strategies.Draw) -> strategies.Program:
    """Such programs with one mistake."""
    choices = strategies.Drawn(draw)
    made = some_program(choices, CATALOG)
    return strategies.Program(mutant(choices, made.source), made.arguments)


#: A program with a mistake may not terminate.
SHORT = RunLimits(calls=1_000, cpu_seconds=3, own_seconds=3, memory_bytes=256 * MiB)


@pytest.fixture(scope="module")
def strict_sandbox() -> Iterator[SandboxRuns]:
    runs = SandboxRuns(SHORT)
    yield runs
    runs.close()


@examples(15)
@given(mutants(), st.integers(0, 7))
def test_accepted_programs_with_a_mistake_agree_with_cpython(
    strict_sandbox: SandboxRuns, program: strategies.Program, seed: int
) -> None:
    checked = check(program.source, CATALOG).checked
    if checked is not None:
        ours = strict_sandbox.run(checked, program.arguments, CATALOG, Answers(seed))
        if not ours.failed or ours.outcome[0] not in ENDING:
            theirs = in_cpython(program.source, program.arguments, seed)
            assert difference(ours, theirs, program.source) is None, program.source


#: Statements that the checker refuses, most of which mean something in Python.
SLIPS = [
    "import math\n    out.append(math.floor(n))",
    "held = iter(xs)\n    out.append([next(held, 0), next(held, 0)])",
    "held = map(str, xs)\n    out.append([list(held), list(held)])",
    "held = (x for x in xs)\n    xs.append(1)\n    out.append(list(held))",
    "held = [reversed(xs)]\n    out.append(len(held))",
    "xs.extend(x + 100 for x in xs if x < 0)\n    out.append(xs)",
    "out.append([xs.append(x) for x in xs if len(xs) < 9])",
    "if map(str, xs):\n        out.append(xs)",
    "out.append(len(list(enumerate(map(str, xs)))))",
    "try:\n        out.append(6 // n)\n    except:\n        out.append(0)",
    "try:\n        out.append(tools.current_time())\n    except OSError:\n        out.append(1)",
    "xs.sort\n    out.append(xs)",
    "if s.isdigit:\n        out.append(s)",
    "parallel(lambda: print(n), lambda: print(s))",
    "print(n, flush=True)",
    "out.append(json.dumps(n, cls=None))",
    "out.append(isinstance(n, NameError))",
    "out.append(n.conjugate())",
    "out.append(s.format(n))",
    "out.append('{} {!r:>9} {2[0]}'.format(n, s, [xs]))",
    "try:\n        raise ValueError(s)\n    except (ValueError, NameError) as error:\n        out.append(error.args)",
    "for x in xs:\n        last = x\n    try:\n        out.append(last)\n    except Exception:\n        out.append(0)",
    "try:\n        out.append(total)\n    except Exception:\n        out.append(0)\n    total = 1",
    "if n > 99:\n        return map(str, xs)",
    "out.append(len(map(str, xs)) if n > 99 else 0)",
]


@examples(40)
@given(programs(), st.sampled_from(SLIPS), st.integers(0, 7))
def test_a_fix_never_changes_what_a_program_does(program: strategies.Program, slip: str, seed: int) -> None:
    source = program.source.replace("    out = []\n", f"    out = []\n    {slip}\n")
    before = in_cpython(source, program.arguments, seed)
    for diagnostic in check(source, CATALOG).diagnostics:
        if diagnostic.fix is not None:
            fixed = diagnostic.fix.apply(source)
            after = in_cpython(fixed, program.arguments, seed)
            assert (repr(after.outcome), after.log, after.asked) == (repr(before.outcome), before.log, before.asked), (
                fixed
            )


@pytest.mark.slow
@settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 50))
def test_many_programs_agree_with_cpython(sandbox: SandboxRuns, program: strategies.Program, seed: int) -> None:
    agree(program, seed, sandbox)
