"""``python -m benchmarks``: runs all benchmarks and prints the results as Markdown."""

from __future__ import annotations

import argparse
import platform
import sys

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


def main() -> None:
    """Run the benchmarks and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        choices=[
            "evaluate",
            "ordinary",
            "runs",
            "checking",
            "keeping",
            "records",
            "governed",
            "web",
            "files",
            "commands",
            "doors",
            "many",
            "spared",
            "suggested",
            "fleet",
            "queues",
        ],
        help="one part",
    )
    parser.add_argument("--rounds", type=int, default=9, help="rounds of the programs")
    parser.add_argument("--full", action="store_true", help="the store at 100,000 tools too (minutes)")
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, {platform.system()}, {platform.machine()}; medians of interleaved runs.\n"
    )
    if options.only in (None, "evaluate"):
        print("## Evaluation, as a ratio to CPython\n", *evaluate.table(options.rounds), "", sep="\n", flush=True)
    if options.only in (None, "ordinary"):
        print("## Ordinary programs\n", *ordinary.table(), "", sep="\n", flush=True)
    if options.only in (None, "runs"):
        print("## Runs and calls\n", *runs.table(options.rounds * 20), "", sep="\n", flush=True)
    if options.only in (None, "checking"):
        print("## Checking\n", *checking.table(options.rounds), "", sep="\n", flush=True)
    if options.only in (None, "keeping"):
        sizes = [100, 10_000, 100_000] if options.full else [100, 1_000, 10_000]
        print("## Defining and keeping\n", *keeping.table(sizes, options.rounds * 3), "", sep="\n", flush=True)
    if options.only in (None, "records"):
        print("## Records\n", *records.table(options.rounds), "", sep="\n", flush=True)
    if options.only in (None, "governed"):
        print(
            "## A governed call\n",
            *governed.table(options.rounds),
            "",
            *observers.table(options.rounds),
            "",
            *journaled.table(options.rounds),
            "",
            sep="\n",
            flush=True,
        )
    if options.only in (None, "files"):
        print("## Files\n", *files.table(options.rounds), "", sep="\n", flush=True)
    if options.only in (None, "web"):
        print("## A request to the web\n", *web.table(options.rounds), "", sep="\n", flush=True)
    if options.only in (None, "commands"):
        print("## A confined command\n", *confined.table(options.rounds), "", sep="\n", flush=True)
    if options.only in (None, "doors"):
        print("## A call from another process\n", *doors.table(options.rounds), "", sep="\n", flush=True)
    if options.only in (None, "many"):
        print("## 10,000 saved tools\n", *many.table(options.rounds), "", sep="\n", flush=True)
    if options.only in (None, "spared"):
        print("## What a saved tool spares an agent\n", *spared.table(), "", sep="\n", flush=True)
    if options.only in (None, "suggested"):
        print("## Suggested tools\n", *suggested.table(), "", sep="\n", flush=True)
    if options.only in (None, "fleet"):
        print(
            "## One home for several processes\n", *fleet.table(max(1, options.rounds // 3)), "", sep="\n", flush=True
        )
    if options.only in (None, "queues"):
        items = 100_000 if options.full else 5_000
        print("## Queues\n", *queues.table(max(1, options.rounds // 3), items), "", sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
