"""The demonstration: define, run and govern tools on real files. Each step runs in its own process, as it does for an agent.

It works in a temporary folder and leaves no files behind. `make demo` runs it.
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
    """Print a line of explanation."""
    print(f"\n\x1b[1m{text}\x1b[0m" if COLOUR else f"\n{text}", flush=True)


class Stage:
    """A new project and a new home."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        shutil.copytree(HERE / "data" / "project", self.project)
        (self.project / ".albert").mkdir()
        self.rules = folder / "albert" / "config" / "governance.yaml"
        self.environment = {**os.environ, "ALBERT_HOME": str(folder / "albert")}
        author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "the project as it was"]):
            subprocess.run(["git", *words], cwd=self.project, check=True)

    def albert(self, *arguments: str, expect: int = 0, shown: str | None = None) -> None:
        """Run the command in a new process. An unexpected exit code ends the demonstration."""
        words = shown or " ".join(f'"{a}"' if " " in a else a for a in arguments)
        print(f"\x1b[32m$\x1b[0m albert {words}" if COLOUR else f"$ albert {words}", flush=True)
        command = [sys.executable, "-m", "albert_tools.surfaces.cli", *arguments]
        code = subprocess.run(
            command, cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL, check=False
        ).returncode
        if code != expect:
            sys.exit(f"expected exit code {expect}, got {code}")
        if code:
            print(f"(exit code {code})", flush=True)


def main() -> None:
    """Run all steps."""
    with tempfile.TemporaryDirectory(prefix="albert-demo-") as folder:
        stage = Stage(Path(folder).resolve())
        tools = sorted(str(path) for path in (HERE / "tools").glob("*.tool"))

        tell("An agent has written some tools. Each is checked, its examples run, and it is saved.")
        stage.albert("define", *tools, shown=f"define examples/tools/*.tool   # {len(tools)} files")

        tell("Another process runs one of them, on a real file.")
        notes = stage.project / "notes.md"
        print(f"notes.md: {notes.read_text().splitlines()[2]}", flush=True)
        stage.albert("run", "find_and_replace", "path=notes.md", "find=cat", "replace=dog")
        print(f"notes.md: {notes.read_text().splitlines()[2]}", flush=True)

        tell("A person reviews what it can do, without reading its source, and approves it. Then its calls ask nobody.")
        stage.albert("review", "find_and_replace")
        stage.albert("review", "find_and_replace", "--approve")

        tell("Tools call tools, in parallel if they only read.")
        stage.albert("run", "project_report", "output=report.md")
        print((stage.project / "report.md").read_text(), end="", flush=True)

        tell("This source has mistakes. All are reported at once, with what to write instead.")
        stage.albert("define", str(HERE / "data" / "refused.tool"), expect=1, shown="define refused.tool")

        tell("Reading a repository is allowed. Git runs confined, and no program that the repository names runs.")
        stage.albert("run", "git_summary", "days=7")

        tell("Paths outside the workspace are denied. Commands need a person's approval: this one waits for it.")
        stage.albert("run", "read_file", "path=../../etc/passwd", expect=3)
        stage.albert("run", "bash", "command=wc -l *.md", expect=4)

        tell(
            "The owner allows commands in governance.yaml. They see the workspace and the system's programs, and nothing else."
        )
        stage.rules.parent.mkdir(parents=True, exist_ok=True)
        stage.rules.write_text("allow: [bash]\n")
        stage.albert("run", "bash", "command=wc -l *.md; ls -A ~; cat /etc/shadow; ls /proc | grep -c '[0-9]'")

        tell("Dangerous commands still need approval, however they are spelled.")
        stage.albert("run", "bash", "command=bash -c 'r\\m -r\"f\" ~/*'", expect=4)

        tell("This program would run for years. It may compute for two seconds.")
        stage.albert("define", str(HERE / "data" / "endless.tool"), shown="define endless.tool")
        stage.albert("run", "endless", "steps=1000000000000", expect=1)

        tell(
            "`albert doctor` proves that every limit works on this machine. `albert prompt` is the guide to give a model."
        )


if __name__ == "__main__":
    main()
