"""``python -m benchmarks``: runs all benchmarks and prints the results as Markdown."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable

from benchmarks import (
    checking,
    confined,
    doors,
    evaluate,
    files,
    fleet,
    governed,
    journaled,
    keeping,
    many,
    observers,
    ordinary,
    queues,
    records,
    runs,
    spared,
    suggested,
    web,
)

#: The parts: each with its heading, and a function of the options that makes the lines of its tables.
PARTS: dict[str, tuple[str, Callable[[argparse.Namespace], list[str]]]] = {
    "evaluate": ("Evaluation, as a ratio to CPython", lambda o: evaluate.table(o.rounds)),
    "ordinary": ("Ordinary programs", lambda o: ordinary.table()),
    "runs": ("Runs and calls", lambda o: runs.table(o.rounds * 20)),
    "checking": ("Checking", lambda o: checking.table(o.rounds)),
    "keeping": (
        "Defining and keeping",
        lambda o: keeping.table([100, 10_000, 100_000] if o.full else [100, 1_000, 10_000], o.rounds * 3),
    ),
    "records": ("Records", lambda o: records.table(o.rounds)),
    "governed": (
        "A governed call",
        lambda o: [*governed.table(o.rounds), "", *observers.table(o.rounds), "", *journaled.table(o.rounds)],
    ),
    "files": ("Files", lambda o: files.table(o.rounds)),
    "web": ("A request to the web", lambda o: web.table(o.rounds)),
    "commands": ("A confined command", lambda o: confined.table(o.rounds)),
    "doors": ("A call from another process", lambda o: doors.table(o.rounds)),
    "many": ("10,000 saved tools", lambda o: many.table(o.rounds)),
    "spared": ("What a saved tool spares an agent", lambda o: spared.table()),
    "suggested": ("Suggested tools", lambda o: suggested.table()),
    "fleet": ("One home for several processes", lambda o: fleet.table(max(1, o.rounds // 3))),
    "queues": ("Queues", lambda o: queues.table(max(1, o.rounds // 3), 100_000 if o.full else 5_000)),
}


def main() -> None:
    """Run the benchmarks and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=[*PARTS], help="one part")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of the programs")
    parser.add_argument("--full", action="store_true", help="the store at 100,000 tools too (minutes)")
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, {platform.system()}, {platform.machine()}; medians of interleaved runs.\n"
    )
    for name, (heading, table) in PARTS.items():
        if options.only in (None, name):
            print(f"## {heading}\n", *table(options), "", sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
