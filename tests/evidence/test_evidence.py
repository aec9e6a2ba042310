"""The report names each failure: a failed test, a result of a wrong form, or a section that could not be made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from albert_tools import Failure, ToolResult
from tests.evidence import __main__ as evidence
from tests.evidence.strict import Call, faults


@pytest.mark.parametrize("path", [a for suite in evidence.SUITES.values() for a in suite if a.endswith(".py")])
def test_the_suites_exist(path: str) -> None:
    assert (evidence.ROOT / path).is_file()


def broken() -> evidence.Section:
    raise OSError("no room")


@pytest.mark.slow
def test_a_failure_is_reported_and_exits_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "artifacts" / "report.md"
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert 1 == 2\n")
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "REPORT", report)
    monkeypatch.setattr(evidence, "SUITES", {"A suite": ["-n", "0", "test_it.py"]})
    monkeypatch.setattr(evidence, "SECTIONS", {"Good": lambda: (["fine"], True)})
    assert evidence.main() == 0
    assert "FAILED" not in report.read_text()
    monkeypatch.setattr(
        evidence, "SECTIONS", {"Tests": evidence.suites, "None": broken, "Good": lambda: (["fine"], True)}
    )
    assert evidence.main() == 1
    text = report.read_text()
    for said in (
        "| Tests | **FAILED** |",
        "exit code 1",
        "1 failed",
        "| None | **FAILED** |",
        "OSError: no room",
        "| Good | passed |",
    ):
        assert said in text, text


def test_changed_files_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.delenv("SINCE", raising=False)
    assert evidence.changes()[1] is False

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *words], cwd=tmp_path, check=True)

    for name in ("old", "changed", "gone"):
        (tmp_path / name).write_text(name)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    (tmp_path / "committed").write_text("x")
    git("add", "-A")
    git("commit", "-qm", "second")
    (tmp_path / "changed").write_text("x")
    (tmp_path / "gone").unlink()
    (tmp_path / "new").write_text("x")
    lines, good = evidence.changes()
    assert good
    assert lines[0].endswith(": 2 added, 1 modified, 1 deleted.")
    assert lines[3:-1] == ["added     committed", "added     new", "deleted   gone", "modified  changed"]
    monkeypatch.setenv("SINCE", "HEAD")
    assert evidence.changes()[0][3:-1] == ["added     new", "deleted   gone", "modified  changed"]


def test_a_result_of_a_wrong_form_or_kind_is_reported() -> None:
    allowed = {"verdict": "allow", "allowed": True, "rule_id": "a rule", "rationale_code": "allowed", "message": ""}
    good = ToolResult("t", "x", timestamp_utc="2025-03-01T12:00:00+00:00", policy=allowed)
    call = Call("files", "success", "t", {})
    assert faults(call, good) == []
    assert len(faults(call, replace(good, timestamp_utc="yesterday"))) == 1
    assert len(faults(call, replace(good, span_id="xyz", request_id=""))) == 1
    assert len(faults(call._replace(kind="truncated"), good)) == 1
    # A failure is not a denial.
    assert len(faults(call._replace(kind="denial"), replace(good, output=None, error=Failure("timeout", "no")))) == 1
