"""Starts with a text and ends with a commit: a saved tool writes a program, reads it back, fixes it, runs its tests and commits it.

The rules apply to every step, and every step is recorded. At the end the script compares the ledger, the counters, the files and
the repository: each call was authorized before it ran, and the commit contains exactly the program that was written and tested.

Run it with ``python examples/build_and_commit.py``. It needs git and pytest, and works in a temporary folder.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from albert_tools import SyncToolService, ToolResult
from albert_tools.store.record.verify import verify
from albert_tools.telemetry import Counters

SOURCE = Path(__file__).with_name("tools") / "build_and_commit.tool"

#: The owner's rules: tests may run, and git may ADD and COMMIT. All other operations of git are denied.
RULES = {
    "tools": {
        "run_tests": {"allowed_in_modes": ["NORMAL"], "timeout_seconds": 600},
        "git": {"allowed_operations": ["ADD", "COMMIT"]},
    }
}

PROGRAM = "def area(width: int, height: int) -> int:\n    return width + height\n"
TESTS = "from area import area\n\n\ndef test_area() -> None:\n    assert area(3, 4) == 12\n"
WORK = {
    "path": "area.py",
    "source": PROGRAM,
    "wrong": "width + height",
    "right": "width * height",
    "tests": "test_area.py",
    "message": "Areas of rectangles",
}

#: The calls of the saved tool, in order.
STEPS = ["write_file", "file_info", "read_file", "run_tests", "edit_file", "run_tests", "git", "git", "git_status"]


def plain_git(folder: Path, *words: str) -> bytes:
    """Run git unconfined, without the user's configuration."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True).stdout


def account(service: SyncToolService, counters: Counters, result: ToolResult, folder: Path) -> list[str]:
    """Compare the ledger, the counters, the files and the commit. Returns a summary of each."""
    entries = service.records()
    proof = verify(folder.parent / "home" / "state" / "record")
    assert proof.ok, proof.problems
    calls: dict[str, Any] = {e.data["call"]: e for e in entries if e.kind == "call"}
    # A call that only reads has one entry with its decision and its result.
    ends: dict[str, Any] = {e.data["call"]: e for e in entries if "ok" in e.data and e.kind in ("call", "result")}
    (whole,) = (call for call, e in calls.items() if e.data["tool"] == "build_and_commit")
    steps = {call: e for call, e in calls.items() if e.data.get("parent") == whole}
    # Each step was authorized before it ran, and its recorded effects are those of the result.
    assert [e.data["tool"] for e in steps.values()] == STEPS
    assert all(calls[call].n <= ends[call].n and ends[call].data["ok"] for call in steps)
    assert all(e.data["verdict"] == "allow" and e.data["rule_id"] for e in steps.values())
    recorded = [effect for call in steps for effect in ends[call].data.get("effects", [])]
    assert [(e["kind"], e["tool"]) for e in recorded] == [(e.kind, e.tool) for e in result.effects]

    # The hashes of the file when it was written and when it was read back.
    first = hashlib.sha256(PROGRAM.encode()).hexdigest()
    assert [e["sha256"] for e in recorded if e.get("path") == "area.py"][:3] == [first] * 3
    # The result, the disk and the commit have the same fixed file.
    output = result.value()
    fixed = PROGRAM.replace(WORK["wrong"], WORK["right"]).encode()
    committed = plain_git(folder, "show", f"{output['commit']}:area.py")
    assert (folder / "area.py").read_bytes() == committed == fixed
    assert output["sha256"] == hashlib.sha256(fixed).hexdigest()
    assert plain_git(folder, "log", "--format=%H %an %s").decode().split() == [
        *(output["commit"], "Albert", "Tools"),
        *WORK["message"].split(),
    ]

    counted = counters.snapshot()
    assert (counted["calls"], counted["open"], counted["failed"]) == (len(STEPS) + 2, 0, 0)
    assert counted["effects"] >= len(recorded)
    denied = [e.data for e in entries if e.kind == "denied"]
    return [
        f"recorded: {len(steps)} steps, each decided before it was done; {len(recorded)} effects; {proof.entries} entries, proved",
        f"counted: {counted['completed']} completed, {counted['blocked']} blocked",
        f"denied: {', '.join(d['tool'] + ' by ' + d['rule_id'] for d in denied)}",
        f"committed: {', '.join(sorted(plain_git(folder, 'ls-files').decode().split()))}, as written and tested",
    ]


def main() -> None:
    """Prepare a project, run the tool, and check the records."""
    with tempfile.TemporaryDirectory() as temporary:
        top = Path(temporary).resolve()
        folder = top / "project"
        (folder / ".albert").mkdir(parents=True)
        (folder / "test_area.py").write_text(TESTS)
        plain_git(folder, "init", "-q", "-b", "main")
        # Do not load the pytest plugins that happen to be installed.
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --disable-plugin-autoload\n")
        (folder / ".git" / "info" / "exclude").write_text(".albert/\npytest.ini\n")
        counters = Counters()
        with SyncToolService.open(home=top / "home", workspace=folder, governance=RULES, telemetry=counters) as service:
            service.define(SOURCE.read_text(encoding="utf-8"))
            result = service.invoke("build_and_commit", WORK)
            print(f"done: {result.value()['clean'] and 'the tests pass, and nothing is left to commit'}")
            # The rules do not allow PUSH.
            assert service.invoke("git", {"operation": "PUSH"}).error.denied
            print("\n".join(account(service, counters, result, folder)))


if __name__ == "__main__":
    main()
