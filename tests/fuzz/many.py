"""``python -m tests.fuzz.many COUNT [FIRST [PROCESSES]]``: tries generated programs beside CPython and inside their manifests.

Each seed gives one program. Every tenth has a mistake, and every tenth is defined in a service, too. The processes share the
seeds. A program that fails is made smaller and printed, one for each kind of failure and a hundred seeds. The exit code is 1 if
there is one.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from albert_tools.engine.model.limits import MiB, RunLimits
from albert_tools.grammar.source_error import SourceError
from tests.fuzz.beside import Found, try_program
from tests.generators.choices import Choices, GivenChoices, RandomChoices, smaller
from tests.helpers.defined_programs import DefinedPrograms, defined_programs
from tests.helpers.generated_tools import generated_tools
from tests.helpers.sandbox_run import SandboxRuns

#: The seeds that share their saved tools.
BATCH = 100
#: How often a smaller program is tried.
MAX_ATTEMPTS = 500
#: A program with a mistake may not terminate.
SHORT = RunLimits(calls=1_000, cpu_seconds=3, own_seconds=3, memory_bytes=256 * MiB)


def main(count: int, first: int = 0, processes: int = 2) -> int:
    """Try the programs. Returns the exit code."""
    os.environ["PYTHONHASHSEED"] = "0"  # the new processes compare with the sandbox, whose sets have this order
    start = time.monotonic()
    done: Counter[str] = Counter()
    batches = range(first // BATCH, (first + count + BATCH - 1) // BATCH)
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=50) as pool:
        for counted, problems in pool.imap_unordered(_batch, batches):
            done.update(counted)
            for problem in problems:
                print(problem, flush=True)
            rate = done["programs"] / (time.monotonic() - start) * 60
            print(f"\r{dict(done)}, {rate:,.0f} a minute   ", end="", file=sys.stderr, flush=True)
    print(f"\n{dict(done)} in {time.monotonic() - start:,.0f} s")
    return 1 if done["failed"] else 0


def _batch(number: int) -> tuple[Counter[str], list[str]]:
    done: Counter[str] = Counter()
    problems: dict[str, str] = {}
    try:
        catalog = generated_tools(number)
    except SourceError as error:
        done["failed"] += 1
        return done, [f"\n=== saved tools of batch {number}: refused\n{error}\n"]
    with (
        closing(SandboxRuns()) as sandbox,
        closing(SandboxRuns(SHORT)) as strict,
        tempfile.TemporaryDirectory() as folder,
        defined_programs(Path(folder), catalog) as service,
    ):
        for seed in range(number * BATCH, (number + 1) * BATCH):
            with_mistake = seed % 10 == 9
            defined = service if seed % 10 == 5 else None
            done["programs"] += 1
            choices = RandomChoices(seed)
            try:
                run = strict if with_mistake else sandbox
                done["accepted"] += try_program(choices, catalog, seed, run, with_mistake, defined)
            except Exception as error:
                done["failed"] += 1
                kind = _kind(error)
                done[kind] += 1
                if kind not in problems:
                    problems[kind] = _smallest(choices.made, number, seed, error, strict, with_mistake, defined)
    return done, list(problems.values())


def _kind(error: Exception) -> str:
    return error.kind if isinstance(error, Found) else f"raises {type(error).__name__}"


def _smallest(
    made: list[int],
    batch: int,
    seed: int,
    error: Exception,
    sandbox: SandboxRuns,
    with_mistake: bool,
    defined: DefinedPrograms | None,
) -> str:
    """A report of the smallest program that fails in the same way."""
    catalog = generated_tools(batch)
    kind = _kind(error)
    differs = kind == "differs from CPython"

    def attempt(choices: Choices) -> Exception | None:
        try:
            try_program(choices, catalog, seed, sandbox if differs else None, with_mistake, defined)
        except Exception as found:
            return found
        return None

    attempts = iter(range(MAX_ATTEMPTS))

    def fails(numbers: list[int]) -> bool:
        if next(attempts, None) is None:
            return False
        found = attempt(GivenChoices(numbers))
        return found is not None and _kind(found) == kind

    # A program with a mistake may not terminate without the sandbox.
    best = made if with_mistake and not differs else smaller(made, fails)
    found = attempt(GivenChoices(best)) or error
    program = getattr(found, "program", None)
    shown = f"{program.source}\n# arguments: {program.arguments}\n" if program is not None else ""
    return f"\n=== seed {seed}: {kind}\n{found!s:.600}\n{shown}"


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
