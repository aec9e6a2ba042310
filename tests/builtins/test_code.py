"""pytest and linters run for real in a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from albert_tools.builtins.code import code
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.primitive import Primitive, call_primitive
from albert_tools.engine.model.validation import violations
from tests.helpers.catalogue_rows import Row, running

EXAMPLE = "tests/examples/test_examples.py::test_from_a_text_to_a_commit"
CATALOGUE = {
    "run_tests": Row(
        {"args": ["--disable-plugin-autoload", "--version"]},
        slow={"args": ["slow.py"]},
        proved={"done": EXAMPLE, "composite": EXAMPLE},
    ),
    "run_linter": running({"linter": "ruff"}, program="ruff"),
}

#: Loading the installed plugins of pytest would take longer than the tests.
ALONE = "--disable-plugin-autoload"


pytestmark = pytest.mark.usefixtures("confinement", "enough_time")


@pytest.fixture
def enough_time(context: Any) -> None:
    context.remaining = 300.0


async def call(tool: Primitive, context: Any, **arguments: Any) -> Any:
    result = await call_primitive(tool, arguments, context)
    assert violations(result, tool.definition.result) == []
    return result


async def test_tests_that_pass_fail_and_try_to_leave_the_workspace(context: Any, root: Path, confinement: str) -> None:
    (root / "test_it.py").write_text(
        "import socket, sys\n"
        "def test_good(): print('on stdout')\n"
        "def test_bad(): assert 1 == 2\n"
        "def test_out():\n    socket.create_connection(('127.0.0.1', 1), 2)\n"
    )
    result = await call(code.run_tests, context, args=[ALONE, "-q", "-k", "good"])
    assert (result["exit_code"], result["truncated"], result["confinement"]) == (0, False, confinement)
    assert "1 passed" in result["stdout"]
    assert result["cmd"][1:3] == ["-m", "pytest"]
    assert result["duration_ms"] > 0
    failing = await call(code.run_tests, context, args=[ALONE, "-q"])
    assert failing["exit_code"] == 1
    assert "2 failed, 1 passed" in failing["stdout"]
    assert sorted(p.name for p in root.iterdir()) == ["test_it.py"]
    assert context.effects[-1][1] == {
        "program": "pytest",
        "args": ["-p", "no:cacheprovider", ALONE, "-q"],
        "cwd": ".",
        "exit_code": 1,
        "confinement": confinement,
    }
    assert (await call(code.run_tests, context, args=[ALONE, "none"]))["exit_code"] == 4


@pytest.mark.parametrize("confinement", ["bwrap"], indirect=True)
async def test_tests_that_lose_a_process_to_memory_do_not_pass(context: Any, root: Path) -> None:
    count = "head -c 160M /dev/zero | tail -n 1 | wc -c"
    (root / "test_it.py").write_text(f"import os\ndef test_it():\n    assert os.system({count!r}) == 0\n")
    context.settings["memory_mb"] = 96
    with pytest.raises(Failure) as caught:
        await call(code.run_tests, context, args=[ALONE, "-q"])
    assert caught.value.code == "memory_limit"
    assert context.effects[-1][1]["over"] == "memory"


async def test_a_test_that_never_ends(context: Any, root: Path) -> None:
    (root / "test_it.py").write_text(
        "import time\ndef test_it():\n    print('begun', flush=True)\n    time.sleep(600)\n"
    )
    for seconds in (1, 2, 4, 8, 16):
        with pytest.raises(Failure) as caught:
            await call(code.run_tests, context, args=[ALONE, "-s"], timeout=seconds)
        assert caught.value.code == "timeout"
        if "begun" in caught.value.details["output"]:
            return
    raise AssertionError("the test never began in time")


async def test_linters(context: Any, root: Path) -> None:
    (root / "a.py").write_text("import os\nx: int = 'text'\n")
    found = await call(code.run_linter, context, linter="ruff", args=["a.py"])
    assert (found["exit_code"], "F401" in found["stdout"]) == (1, True)
    assert "Incompatible types" in (await call(code.run_linter, context, linter="mypy", args=["a.py"]))["stdout"]
    await call(code.run_linter, context, linter="ruff-format", args=["a.py"])
    assert (root / "a.py").read_text() == 'import os\n\nx: int = "text"\n'


async def test_a_missing_pytest_is_reported(context: Any, root: Path) -> None:
    own = root / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text('#!/bin/sh\necho "$0: No module named $2" >&2\nexit 1\n')
    own.chmod(0o755)
    with pytest.raises(Failure) as caught:
        await call(code.run_tests, context)
    assert (caught.value.code, caught.value.hint) == ("not_found", "pip install pytest")
