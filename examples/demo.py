"""The demonstration: the whole way of a tool, on real files, each step a process of its own, as an agent would do it.

It works in a temporary folder and leaves nothing behind. `make demo` runs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def tell(text: str) -> None:
    """The storyteller."""
    print(f"\n\x1b[1m{text}\x1b[0m" if COLOUR else f"\n{text}", flush=True)


class Stage:
    """A project and an Albert home of their own."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        shutil.copytree(HERE / "data" / "project", self.project)
        (self.project / ".albert").mkdir()
        self.environment = {**os.environ, "ALBERT_HOME": str(folder / "albert")}

    def albert(self, *arguments: str, expect: int = 0, shown: str | None = None) -> None:
        """Run the command in a new process; the demonstration fails when it ends otherwise than expected."""
        words = shown or " ".join(f'"{a}"' if " " in a else a for a in arguments)
        print(f"\x1b[32m$\x1b[0m albert {words}" if COLOUR else f"$ albert {words}", flush=True)
        command = [sys.executable, "-m", "albert_tools.surfaces.cli", *arguments]
        code = subprocess.run(command, cwd=self.project, env=self.environment, check=False).returncode
        if code != expect:
            sys.exit(f"this should have ended with exit code {expect}, and ended with {code}")
        if code:
            print(f"(exit code {code})", flush=True)


def main() -> None:
    """The story."""
    with tempfile.TemporaryDirectory(prefix="albert-demo-") as folder:
        stage = Stage(Path(folder).resolve())
        tools = sorted(str(path) for path in (HERE / "tools").glob("*.tool"))

        tell("An agent has written some tools. Each is checked, its examples are run, and it is saved.")
        stage.albert("define", *tools, shown=f"define examples/tools/*.tool   # {len(tools)} files")

        tell("Another process runs one of them, on a real file.")
        notes = stage.project / "notes.md"
        print(f"notes.md: {notes.read_text().splitlines()[2]}", flush=True)
        stage.albert("run", "find_and_replace", "path=notes.md", "find=cat", "replace=dog")
        print(f"notes.md: {notes.read_text().splitlines()[2]}", flush=True)

        tell("Tools call tools, side by side where they only read.")
        stage.albert("run", "project_report", "output=report.md")
        print((stage.project / "report.md").read_text(), end="", flush=True)

        tell("This one is not a tool yet. Everything that is wrong with it is said at once, and what to write instead.")
        stage.albert("define", str(HERE / "data" / "refused.tool"), expect=1, shown="define refused.tool")

        tell("What the owner has not allowed is denied, and so is every way out of the workspace.")
        stage.albert("run", "git_summary", "days=7", expect=3)
        stage.albert("run", "read_file", "path=../../etc/passwd", expect=3)

        tell("A program may be wrong in other ways. This one would run for years; it may compute for two seconds.")
        stage.albert("define", str(HERE / "data" / "endless.tool"), shown="define endless.tool")
        stage.albert("run", "endless", "steps=1000000000000", expect=1)

        tell(
            "`albert doctor` proves that every limit holds on this machine. `albert prompt` is the guide to give a model."
        )


if __name__ == "__main__":
    main()
