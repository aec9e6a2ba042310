"""The plugin for pytest: the tests of docs/embedding.md pass, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.helpers.pages import ROOT

PAGE = (ROOT / "docs" / "embedding.md").read_text("utf-8")
OWN = '''

from albert_tools import Failure, primitive


@primitive(effects=["write"])
def pay(amount: int) -> str:
    """Pay."""
    raise AssertionError("the test has an answer")


class TestOwn:
    @pytest.fixture
    def albert_rules(self):
        return {}

    @pytest.fixture
    def albert_primitives(self):
        return [pay]

    @pytest.fixture
    def albert_answers(self):
        return {"pay": Failure("exists", "paid before"), "current_time": {"iso": "2026-01-01"}}

    def test_an_answer_can_be_a_failure(self, albert_service, albert_calls):
        assert albert_service.invoke("pay", {"amount": 3}).error.code == "exists"
        assert [(call.tool, call.arguments) for call in albert_calls()] == [("pay", {"amount": 3})]

    def test_an_answer_must_match_the_schema(self, albert_service):
        assert albert_service.invoke("current_time", {}).error.code == "invalid_result"
'''


@pytest.mark.slow
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    block = PAGE[PAGE.index("    import pytest\n") :]
    (tmp_path / "test_own.py").write_text(textwrap.dedent(block) + OWN)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "albert_tools.pytest_plugin",
        "--rootdir",
        str(tmp_path),
        "test_own.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].startswith("4 passed"), done.stdout
