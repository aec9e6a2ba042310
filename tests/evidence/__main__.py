"""`make evidence`: writes a test report to `artifacts/TEST_REPORT_TOOL_INVOKE_MVP.md`.

The report lists the files with their hashes and the test commands with their output. It shows real results validated against
the strict schema, the outcome of every attack under each confinement, and each limit with a call that exceeds it. Failures
are marked. If there is a failure, the command exits with 1.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from albert_tools.engine.sandbox.command.confinement import found
from tests.evidence.attacks import columns, outcomes
from tests.evidence.caps import caps
from tests.evidence.strict import SCHEMA, faults, results

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "artifacts" / "TEST_REPORT_TOOL_INVOKE_MVP.md"

#: Folders and files whose hashes the report lists, in this order.
FOLDERS = (
    "grammar",
    "engine",
    "builtins",
    "store",
    "telemetry",
    "surfaces",
    "albert_tools",
    "examples",
    "tests",
    "benchmarks",
    "docs",
)
FILES = ("pyproject.toml", "constraints.txt", "Makefile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE")
#: Folders of generated files.
GENERATED = ("__pycache__", ".hypothesis", ".pytest_cache")

#: For each claim, the arguments for pytest that run its tests.
SUITES = {
    "The workspace contains": [
        "tests/engine/workspace/test_workspace.py",
        "tests/engine/workspace/test_find_workspace.py",
    ],
    "Programs can't get out of the evaluator": ["tests/engine/sandbox/worker/test_program_escapes.py"],
    "Attacks on the command sandbox are real, and what never ends is ended": [
        "tests/engine/sandbox/command/test_command_escapes.py",
        "--deselect=tests/engine/sandbox/command/test_command_escapes.py::test_every_probe_fails",
    ],
    "The strict form of a result": ["tests/engine/model/test_result.py"],
    "Every stage of a call, allowed, denied and asked": ["tests/engine/pipeline/test_stages.py"],
    "The files family": ["tests/engine/pipeline/test_files_family.py"],
    "Commands, confined": ["tests/builtins/test_shell.py", "tests/engine/pipeline/test_commands_confined.py"],
    "Commands are judged before they run": ["tests/engine/shell/test_judge.py"],
    "Requests to where none may go": ["tests/builtins/test_ssrf.py"],
    "Every primitive of the catalogue": ["tests/test_catalogue.py"],
    "From a text to a commit": ["tests/examples/test_examples.py", "-k", "commit"],
}

#: The lines of a section, and whether everything in it passed.
Section = tuple[list[str], bool]


def digests() -> Section:
    """Every source file with its hash."""
    lines = ["```text"]
    for folder in FOLDERS:
        below = (p for p in (ROOT / folder).rglob("*") if p.is_file() and not p.is_symlink())
        # The targets of links are listed in their own folders.
        for path in sorted(p for p in below if not set(GENERATED) & set(p.relative_to(ROOT).parts)):
            lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT)}")
    lines += [f"{hashlib.sha256((ROOT / name).read_bytes()).hexdigest()}  {name}" for name in FILES]
    return [*lines, "```"], True


def suites() -> Section:
    """The tests with their output."""
    lines, good = [], True
    for title, arguments in SUITES.items():
        chosen = ["-m", "not slow and not surfaces"]
        words = ["-m", "pytest", "-q", "-n", "2", *chosen, "-p", "no:cacheprovider", "--color=no", *arguments]
        progress(title)
        done = subprocess.run(
            [sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        good = good and done.returncode == 0
        printed = done.stdout.decode("utf-8", "replace").replace("```", "'''").rstrip()
        command = "python " + " ".join(f"'{w}'" if " " in w else w for w in words)
        lines += [f"### {title}", "", f"`{command}`: exit code {done.returncode}, {verdict(done.returncode == 0)}", ""]
        lines += ["```text", printed, "```", ""]
    return lines, good


def strict() -> Section:
    """Results against the schema."""
    lines = ["| family | kind | tool | fits the schema |", "|---|---|---|---|"]
    shown: dict[str, str] = {}
    good = True
    for call, result in results():
        wrong = faults(call, result)
        good = good and not wrong
        lines.append(f"| {call.family} | {call.kind} | `{call.tool}` | {cell('; '.join(wrong)) or 'yes'} |")
        shown.setdefault(call.kind, json.dumps(result.strict(), indent=1, ensure_ascii=False))
    lines += ["", f"Validated by jsonschema {version('jsonschema')} (Draft 2020-12). The first of each kind:"]
    for kind, text in shown.items():
        text = text if len(text) < 3000 else text[:1500] + "\n…\n" + text[-1500:]
        lines += ["", f"A {kind}:", "", "```json", text.replace("```", "'''"), "```"]
    return [*lines, "", "The schema:", "", "```json", json.dumps(SCHEMA, indent=1), "```"], good


def containment() -> Section:
    """Every attack, under each confinement."""
    heads = columns()
    lines = [f"| attack | {' | '.join(c.title for c in heads)} |", "|---" * (len(heads) + 1) + "|"]
    good = {"bwrap", "landlock"} <= set(found().kinds) or sys.platform != "linux"
    attacks = outcomes()
    for name, by_column in attacks.items():
        row = [by_column[c] for c in heads]
        good = good and all(o in ("held", "open, as documented") for o in row)
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(map(cell, row))} |")
    missing = "".join(f" Not available: {kind} ({why})." for kind, why in found().missing.items() if kind != "seatbelt")
    every = [outcome for by_column in attacks.values() for outcome in by_column.values()]
    held, known = every.count("held"), every.count("open, as documented")
    counts = f"{held} held, {known} open as documented, {len(every) - held - known} failed"
    summary = f"{len(attacks)} attacks, made {len(every)} times: {counts}."
    return [summary + missing, "", *lines], good


def truncation() -> Section:
    """Every limit, exceeded by a call."""
    lines = ["| bound | value | call | outcome | held |", "|---|---|---|---|---|"]
    good = True
    for one in caps():
        good = good and one.held
        lines.append(f"| `{one.name}` | {one.value} | {cell(one.call)} | {cell(one.outcome)} | {verdict(one.held)} |")
    return lines, good


def changes() -> Section:
    """The files that were added, modified and deleted since a commit: SINCE, the last release, or the first commit."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    last = git("describe", "--tags", "--abbrev=0") or git("rev-list", "--max-parents=0", "HEAD")[:12]
    since = os.environ.get("SINCE") or last
    listed = git("diff", "--name-status", "--no-renames", since, "--")
    listed += "".join(f"\nA\t{name}" for name in git("ls-files", "--others", "--exclude-standard").splitlines())
    states = {"A": "added", "M": "modified", "D": "deleted"}
    rows = sorted({(states.get(line[:1], line[:1]), line[2:]) for line in listed.splitlines() if line})
    counts = ", ".join(f"{sum(r[0] == state for r in rows)} {state}" for state in states.values())
    head = f"Since {since}, with changes that are not committed: {counts}."
    return [head, "", "```text", *(f"{state:8}  {name}" for state, name in rows), "```"], bool(rows)


SECTIONS: dict[str, Callable[[], Section]] = {
    "Results meet the strict schema": strict,
    "Truncation caps": truncation,
    "Containment of commands": containment,
    "Tests": suites,
    "Added and modified files": changes,
    "Files": digests,
}


def verdict(good: bool) -> str:
    """The word for an outcome. The word for a failure stands out."""
    return "passed" if good else "**FAILED**"


def cell(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("`", "'")


def progress(text: str) -> None:
    """Print the current step."""
    print(f"  {text} …", flush=True)


def machine() -> Iterator[str]:
    """The source, Python and machine of this run."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    yield f"- Source: {commit.stdout.strip() or 'no repository'}"
    system = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    yield f"- Python {platform.python_version()} on {system}"
    who = "as root" if os.getuid() == 0 else "as an ordinary user"
    yield f"- Run {who}; commands can be confined by {', '.join(found().kinds) or 'nothing'}"


def main() -> int:
    """Write the report. Returns 1 if something in it failed."""
    began = time.monotonic()
    written: list[str] = []
    summary = ["| section | |", "|---|---|"]
    good = True
    for title, section in SECTIONS.items():
        print(title, flush=True)
        try:
            lines, fine = section()
        except Exception as error:
            # A section without a result proves nothing.
            lines, fine = [f"This section could not be made: {type(error).__name__}: {error}"], False
        good = good and fine
        summary.append(f"| {title} | {verdict(fine)} |")
        written += ["", f"## {title}", "", *lines]
    seconds = time.monotonic() - began
    head = [
        "# Test report: calls of tools",
        "",
        *machine(),
        f"- Made by `make evidence` in {seconds:.0f} s",
        "",
        *summary,
    ]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join([*head, *written]) + "\n", encoding="utf-8")
    print(f"{REPORT.relative_to(ROOT)}: {verdict(good)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
